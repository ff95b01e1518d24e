/**
 * One exchange of a chat as it happens: the answer as it is written, wrapped at words, each call and what it came to in one
 * line, and where long work stands. Reasoning is only counted. In lines that hold text of a model or a tool, ours comes
 * first: a terminal that lays out both directions then cannot put theirs before it.
 */
import type * as Effect from "effect/Effect"
import type { AgentEvent } from "../effects/AgentEvent.ts"
import type { Outcome } from "../effects/Outcome.ts"
import { shown } from "../effects/RunDirectory.ts"
import { columnsOf, fitted } from "./Columns.ts"
import { block, count, duration, inline, size } from "./Printable.ts"
import { readableLine } from "./Readable.ts"
import { answerText, argumentsText, restartText, stopText } from "./RunWords.ts"
import type { Screen } from "./Screen.ts"
import { ShownCalls } from "./ShownCalls.ts"
import { WordWrap, wrapped } from "./WordWrap.ts"
import { WorkLine } from "./WorkLine.ts"

export interface ChatViewOptions {
  /** Answers only. */
  readonly quiet: boolean
  /** The terminal is told which way paragraphs read. */
  readonly directions: boolean
}

/** Units of a result that are looked at for its line. */
const mostLooked = 4_000

/** What a model writes, as it comes. */
const written: ReadonlySet<AgentEvent["_tag"]> = new Set(["Generated", "Reasoning", "Text", "Retracted"])

/** A message that took longer says how long, and how much was written. */
const longMillis = 2_000

export class ChatView {
  readonly #screen: Screen
  readonly #quiet: boolean
  readonly #wrap: WordWrap
  readonly #work: WorkLine
  readonly #calls = new ShownCalls()
  /** Text of an answer is on the screen, and its line is open. */
  #inText = false
  /** This turn has shown text. */
  #said = false
  /** What the last turn showed does not count. */
  #takenBack = false
  /** The model is in its reasoning. */
  #reasoning = false
  /** Somebody has stopped this message. */
  #stopping = false

  constructor(screen: Screen, { directions, quiet }: ChatViewOptions) {
    this.#screen = screen
    this.#quiet = quiet
    this.#wrap = new WordWrap({ write: screen.write, columns: () => screen.columns, directions })
    this.#work = new WorkLine(screen, { inText: () => this.#inText, quiet })
  }

  /** @param share of the weights that is there, from 0 to 1 */
  readonly loading = (share: number): void =>
    this.#work.doing("loading", share < 1 ? `loading the model, ${Math.floor(share * 100)} %` : "making the context")

  readonly starting = (): void => this.#work.doing("loading", "starting the engine")

  readonly loaded = (): void => this.#work.rest()

  /** Shows again where things stand, with the time that has passed. Somebody calls it now and then. */
  readonly tick = (): void => this.#work.tick()

  /** Returns once the call is on the screen, or will not be: a question about it comes after it. */
  readonly caughtUp = (callId: string): Effect.Effect<void> => this.#calls.caughtUp(callId)

  /** Somebody stops this message, and that was said below what is there of its answer: nothing more of it is shown. */
  readonly stopping = (): void => {
    this.#stopping = true
    if (this.#inText) this.#wrap.cut()
    this.#inText = false
  }

  readonly event = (event: AgentEvent): void => {
    if (this.#stopping && written.has(event._tag)) return
    switch (event._tag) {
      case "StateEntered":
        if (event.state === "Generating") this.#startTurn()
        break
      case "Prefill":
        this.#work.doing("reading", `reading, ${event.done} of ${count(event.total, "token")}`)
        break
      case "Reasoning":
        this.#reasoning = true
        break
      case "Generated":
        this.#written(event)
        break
      case "Text":
        this.#text(event.text)
        break
      case "Retracted":
        if (event.reason === "malformed") this.#note(this.#screen.paint.dim("(that was not an answer)"))
        this.#takenBack = event.reason === "rolled_back"
        this.#said = false
        break
      case "ApprovalRequested":
        this.#work.doing("asking", `${inline(event.tool)} waits for an approval`)
        break
      case "CallStarted":
        this.#work.started(event.callId, inline(event.tool))
        break
      default:
        this.#call(event)
    }
  }

  /** How it ended, where that is not an answer that everybody can see. */
  readonly ended = (outcome: Outcome): void => {
    const { paint } = this.#screen
    const { millis, stop, usage } = outcome
    this.#work.over()
    this.#calls.forget()
    this.#takenBack = false
    const late = this.#stopping && stop._tag === "Completed"
    this.#stopping = false
    if (late) this.#remark("(too late: the answer was whole, and stands; /undo takes it back)")
    else if (stop._tag === "Completed" && !this.#said) this.#text(stop.text)
    this.#endText()
    this.#work.rest()
    if (stop._tag === "NeedsInput") {
      this.#text(stop.question)
      this.#endText()
    } else if (stop._tag !== "Completed") {
      const colour = stop._tag === "AwaitingApproval" || stop._tag === "Cancelled" ? paint.cyan : paint.red
      this.#screen.line(colour(wrapped(block(stopText(stop)), this.#screen.columns)))
    }
    if (stop._tag === "Cancelled") this.#note(paint.dim("the message stands; /undo takes it back"))
    else if (stop._tag === "Escalated" && stop.key !== undefined) {
      this.#remark(`nobody knows whether it happened: npx writ ledger show ${stop.key.slice(0, 12)}`)
    } else if (stop._tag === "ContextExhausted") this.#note(paint.dim("/undo makes room, /new begins anew"))
    else if (millis.total >= longMillis) {
      this.#note(paint.dim(`(${count(usage.outputTokens, "token")}, ${duration(millis.total)})`))
    }
  }

  #startTurn(): void {
    // Where no turn follows, the end says enough.
    if (this.#takenBack) this.#note(this.#screen.paint.dim("(taken back; once more)"))
    this.#takenBack = false
    this.#endText()
    this.#said = false
    this.#reasoning = false
    this.#work.doing("writing", "thinking")
  }

  #written({ ended, tokens }: Extract<AgentEvent, { readonly _tag: "Generated" }>): void {
    if (ended) this.#work.rest()
    else this.#work.doing("writing", `${this.#reasoning ? "thinking" : "writing"}, ${count(tokens, "token")}`)
  }

  #text(text: string): void {
    this.#reasoning = false
    this.#inText = true
    this.#said = true
    this.#wrap.push(text)
  }

  #endText(): void {
    if (this.#inText) this.#wrap.end()
    this.#inText = false
  }

  #note(text: string): void {
    if (this.#quiet) return
    this.#endText()
    this.#screen.line(`  ${text}`)
  }

  /** A sentence of ours, which may take several lines. */
  #remark(text: string): void {
    if (this.#quiet) return
    this.#endText()
    this.#screen.line(this.#screen.paint.dim(wrapped(`  ${text}`, this.#screen.columns)))
  }

  #call(event: AgentEvent): void {
    const { columns, paint } = this.#screen
    const one = (mark: string, ours: string, theirs: string, painted = (text: string) => text) => {
      const room = columns - 5 - ours.length
      // A result may have megabytes, and marks that take no room: only a bounded part is looked at.
      const part = theirs.length > mostLooked ? `${theirs.slice(0, mostLooked)}…` : theirs
      this.#note(`${mark} ${painted(ours)} ${fitted(readableLine(part), room)}`)
    }
    switch (event._tag) {
      case "Compacted":
        this.#remark(`(${count(event.exchanges, "old exchange")} left the context, to make room)`)
        break
      case "EngineRestarted":
        this.#remark(`(${restartText(event)})`)
        break
      case "Malformed":
        one(paint.red("✗"), "malformed call:", event.reason)
        break
      case "CallProposed":
        one(paint.cyan("→"), inline(event.tool), argumentsText(event.arguments), paint.bold)
        this.#calls.add(event.callId)
        break
      case "CallFinished":
        this.#work.finished(event.callId)
        one(
          event.answer.ok ? paint.green("←") : paint.red("✗"),
          `${this.#of(event)}${duration(event.millis)}:`,
          answerText(event.answer)
        )
        break
      case "CallRejected":
        one(paint.red("✗"), this.#of(event).trim(), answerText(event.answer))
        break
      case "CallSkipped":
        // The question itself follows.
        if (event.reason !== "NeedsInput") one(paint.dim("–"), `${inline(event.tool)} was not executed`, "")
        break
      case "ArtifactWritten": {
        const { bytes, name, path } = event.artifact
        const where = readableLine(path === undefined ? name : shown(path))
        const line = `${paint.green("+")} ${size(bytes)}:`
        // A path that is cut is none.
        const beside = columnsOf(where) <= columns - 5 - size(bytes).length
        this.#note(beside ? `${line} ${where}` : `${line}\n    ${where}`)
        break
      }
    }
    this.#work.rest()
  }

  /** Names the tool of an answer unless its call is right above. */
  #of({ callId, tool }: { readonly callId: string; readonly tool: string }): string {
    return this.#calls.isAbove(callId) ? "" : `${inline(tool)} `
  }
}
