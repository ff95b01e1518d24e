/**
 * A run as it happens, for people: turns as they stream, each call with its arguments, each result, what was left behind,
 * and what it took. Only says what events say; the record is the trace.
 */

import type * as Effect from "effect/Effect"
import type { AgentEvent } from "../effects/AgentEvent.ts"
import type { Outcome } from "../effects/Outcome.ts"
import { person } from "../effects/Policy.ts"
import { shown } from "../effects/RunDirectory.ts"
import { columnsOf } from "./Columns.ts"
import { type Continuing, quoted } from "./Continuing.ts"
import { block, count, cut, duration, inline, size } from "./Printable.ts"
import { answerText, argumentsText, restartText, stopText } from "./RunWords.ts"
import type { Screen } from "./Screen.ts"
import { ShownCalls } from "./ShownCalls.ts"
import { WordWrap, wrapped } from "./WordWrap.ts"
import { WorkLine } from "./WorkLine.ts"

export interface RunHeader {
  readonly model: string
  readonly notice: string | undefined
  readonly codec: string
  readonly tools: ReadonlyArray<string>
  readonly task: string
  readonly directory: string
  /** Where a resumed run goes on. */
  readonly resumed: string | undefined
}

/** A turn that takes longer says how fast it was. */
const longMillis = 2_000

/** `45.2 tokens/s`; nothing where nobody measured. */
const rateOf = (tokens: number, millis: number): string =>
  millis > 0 && tokens > 0 ? `${((1000 * tokens) / millis).toFixed(1)} tokens/s` : ""

/** Events that are one line each. */
type Noted = Extract<
  AgentEvent,
  {
    readonly _tag: "Malformed" | "CallProposed" | "CallFinished" | "CallRejected" | "CallSkipped" | "ArtifactWritten"
  }
>

const lookFirst = "Nobody here knows whether it happened. Look where it would be seen, then say what you found:"

/** What a model's text is indented by. */
const margin = "  "

/** What the names in front of values take. */
const nameColumns = 11

/** What a note that goes on is indented by: its text, not its mark, stands above. */
const belowMark = "    "

/** Characters of a refusal's reasons that are shown. */
const mostReasons = 1_000

/** Prints one run to a screen. */
export class RunView {
  readonly #screen: Screen
  /** Wraps at words what a person reads. Other programs get the text as it is. */
  readonly #wrap: WordWrap
  readonly #work: WorkLine
  readonly #calls = new ShownCalls()
  /** A turn's text is open: the cursor is inside a line of it. */
  #inText: "Text" | "Reasoning" | undefined
  /** A line of wrapped text has its margin. */
  #begun = false
  #loadMillis = 0
  /** What a person took to answer counts as orchestration, and is none. */
  #askedMillis = 0
  #askedAt = 0
  /** Tokens of all turns so far, and what they took. */
  readonly #generated = { tokens: 0, millis: 0 }
  /** Turns that are shown so far. */
  #turn = 0

  constructor(screen: Screen) {
    this.#screen = screen
    const columns = () => screen.columns - margin.length
    this.#wrap = new WordWrap({ write: this.#put, columns, directions: screen.directions })
    this.#work = new WorkLine(screen, { inText: () => this.#inText !== undefined })
  }

  readonly header = (header: RunHeader): void => {
    const { columns, line, paint } = this.#screen
    const field = (name: string, value: string) =>
      line(`${paint.dim(name.padEnd(nameColumns - 1))} ${cut(value, columns - nameColumns)}`)
    if (header.notice !== undefined) line(paint.yellow(this.#sentence(header.notice)))
    field("model", `${header.model}, codec ${header.codec}`)
    field("tools", header.tools.length === 0 ? "none" : header.tools.join(", "))
    field("task", header.task)
    field("run", header.directory)
    if (header.resumed !== undefined) line(paint.cyan(this.#sentence(header.resumed)))
  }

  /** @param share of the weights that is there, from 0 to 1. The library comes first and says nothing: `starting`. */
  readonly loading = (share: number): void =>
    this.#work.doing(
      "loading",
      share < 1 ? `loading the model, ${Math.floor(share * 100)} %` : "the model is loaded, its context is being made"
    )

  readonly starting = (): void => this.#work.doing("loading", "starting the engine")

  /** @param millis until the model, its thread and the tool threads were there */
  readonly loaded = (millis: number): void => {
    this.#loadMillis = millis
    this.#work.rest()
  }

  /** Shows again where things stand, with the time that has passed. Somebody calls it now and then. */
  readonly tick = (): void => this.#work.tick()

  /** Returns once the call is on the screen, or will not be: a question about it comes after it. */
  readonly caughtUp = (callId: string): Effect.Effect<void> => this.#calls.caughtUp(callId)

  readonly event = (event: AgentEvent): void => {
    switch (event._tag) {
      case "RunStarted":
      case "Finished":
        break
      case "Routed":
        this.#routed(event)
        break
      case "StateEntered":
        if (event.state === "Generating") this.#startTurn(event.turn)
        break
      case "Prefill":
        this.#work.doing("reading", `reading, ${event.done} of ${count(event.total, "token")}`)
        break
      case "Generated":
        this.#written(event)
        break
      case "ApprovalRequested":
        this.#askedAt = this.#screen.now()
        this.#work.doing("asking", `${inline(event.tool)} waits for an approval`)
        break
      case "ApprovalDecided":
        if (event.by === person) this.#askedMillis += this.#screen.now() - this.#askedAt
        this.#work.rest()
        break
      case "Text":
      case "Reasoning":
        this.#text(event._tag, event.text)
        break
      case "Retracted":
        if (event.reason !== "call") this.#note(`(not an answer: ${event.reason.replaceAll("_", " ")})`)
        break
      case "Compacted":
        this.#note(`(the context was full: ${count(event.exchanges, "old exchange")} left it)`)
        break
      case "EngineRestarted":
        this.#note(`(${restartText(event)})`)
        break
      case "CallStarted":
        this.#work.started(event.callId, inline(event.tool))
        break
      default:
        if (event._tag === "CallFinished") this.#work.finished(event.callId)
        this.#note(this.#noteOf(event))
        this.#work.rest()
        if (event._tag === "CallProposed") this.#calls.add(event.callId)
    }
  }

  #noteOf(event: Noted): string {
    const { columns, paint } = this.#screen
    const width = columns - 4
    switch (event._tag) {
      case "Malformed":
        return `${paint.red("✗")} ${this.#sentence(`malformed call: ${event.reason}`, belowMark)}`
      case "CallProposed": {
        const tool = inline(event.tool)
        return `${paint.cyan("→")} ${paint.bold(tool)} ${cut(argumentsText(event.arguments), width - tool.length - 1)}`
      }
      case "CallFinished": {
        const mark = event.answer.ok ? paint.green("←") : paint.red("✗")
        const [time, whose] = [duration(event.millis), this.#of(event.callId, event.tool)]
        const text = cut(answerText(event.answer), width - time.length - whose.length - 2)
        return `${mark} ${whose}${text}  ${paint.dim(time)}`
      }
      case "CallRejected": {
        const whose = this.#of(event.callId, event.tool)
        if (!event.answer.ok && event.answer.kind === "dry_run") {
          return `${paint.dim("–")} ${this.#sentence(`${event.tool} was not executed: this is a dry run`, belowMark)}`
        }
        const reasons = cut(answerText(event.answer), mostReasons)
        return `${paint.red("✗")} ${this.#sentence(`${whose}${reasons}`, belowMark)}`
      }
      case "CallSkipped": {
        const waits = event.reason === "AwaitingApproval"
        const what = waits ? "was not executed: the run waits for an approval" : "was skipped"
        return `${paint.dim("–")} ${this.#sentence(`${event.tool} ${what}`, belowMark)}`
      }
      case "ArtifactWritten": {
        const { bytes, sha256 } = event.artifact
        const name = inline(event.artifact.name)
        const said = this.#sentence(`artifact ${name}, ${size(bytes)}, sha256 ${sha256.slice(0, 16)}…`, belowMark)
        return `${paint.green("+")} ${said.replace(` ${name}`, paint.bold)}`
      }
    }
  }

  /** Names the tool of a result unless its call is right above. */
  #of(callId: string, tool: string): string {
    return this.#calls.isAbove(callId) ? "" : `${inline(tool)}: `
  }

  #startTurn(turn: number): void {
    const { line, paint } = this.#screen
    this.#endText()
    this.#turn = turn + 1
    line(`\n${paint.bold(`turn ${this.#turn}`)}`)
    this.#work.doing("writing", "the model is thinking")
  }

  /** Text on the screen shows by itself that it comes; a call is not shown before it is whole, and a long turn says its rate. */
  #written({ ended, millis, tokens }: Extract<AgentEvent, { readonly _tag: "Generated" }>): void {
    const rate = rateOf(tokens, millis)
    const said = `${count(tokens, "token")}${rate === "" ? "" : ` at ${rate}`}`
    if (!ended) {
      this.#work.doing("writing", `writing, ${said}`)
      return
    }
    this.#generated.tokens += tokens
    this.#generated.millis += millis
    if (millis >= longMillis) this.#note(this.#screen.paint.dim(`(${said})`))
    this.#work.rest()
  }

  /** What the caller has said needs no line. */
  #routed({ by, route }: Extract<AgentEvent, { readonly _tag: "Routed" }>): void {
    if (by === "chat") this.#note("(this is a task: it goes on with the tools)")
    if (by !== "model") return
    this.#note(this.#screen.paint.dim(route === "chat" ? "(taken for a chat: no tools)" : "(taken for a task)"))
  }

  #text(kind: "Text" | "Reasoning", text: string): void {
    const { paint, terminal, write } = this.#screen
    if (this.#inText !== kind) this.#endText()
    if (terminal) {
      this.#inText = kind
      this.#wrap.push(text)
      return
    }
    if (this.#inText !== kind) write(margin)
    this.#inText = kind
    const indented = block(text).replaceAll("\n", `\n${margin}`)
    write(kind === "Reasoning" ? paint.dim(indented) : indented)
  }

  /** Wrapped text on its way to the screen. What tells the terminal a direction takes no room, and so has no margin. */
  readonly #put = (text: string): void => {
    const { paint, write } = this.#screen
    const tells = text.startsWith("\u001b")
    const lines = text.split("\n").map((line, at) => {
      if (at > 0) this.#begun = false
      if (line === "" || tells) return line
      const indented = `${this.#begun ? "" : margin}${this.#inText === "Reasoning" ? paint.dim(line) : line}`
      this.#begun = true
      return indented
    })
    write(lines.join("\n"))
  }

  #endText(): void {
    if (this.#inText === undefined) return
    if (this.#screen.terminal) this.#wrap.end()
    else this.#screen.line()
    this.#inText = undefined
    this.#begun = false
  }

  /** A text of the model's as a whole, behind the margin. */
  #whole(text: string): string {
    const { columns, terminal } = this.#screen
    const lines = terminal ? wrapped(text, columns - margin.length) : block(text)
    return `${margin}${lines.replaceAll("\n", `\n${margin}`)}`
  }

  #note(text: string): void {
    this.#endText()
    this.#screen.line(`  ${text}`)
  }

  /** Ours, wrapped at words where a person reads it. `before`: what stands in front of the first line, or of the others. */
  #sentence(text: string, before = ""): string {
    const { columns, terminal } = this.#screen
    if (!terminal) return inline(text)
    return wrapped(inline(text), columns - before.length).replaceAll("\n", `\n${before}`)
  }

  /** A name and what is behind it; below it, and whole, where that would not fit. */
  #field(name: string, value: string, colour = (text: string) => text): void {
    const { columns, line, paint } = this.#screen
    const fits = nameColumns + columnsOf(value) <= columns
    if (fits) line(`${paint.dim(name.padEnd(nameColumns - 1))} ${colour(value)}`)
    else line(`${name === "" ? "" : `${paint.dim(name)}\n`}${colour(value)}`)
  }

  /** The closing lines, after those of the caller: how it stopped, what it took, where everything is. */
  readonly closing = (
    outcome: Outcome,
    transcript: string | undefined,
    continuing: Continuing,
    before: ReadonlyArray<string> = []
  ): void => {
    const { line, paint } = this.#screen
    const { artifacts, millis, stop, toolCalls, tracePath, turns, usage } = outcome
    this.#work.over()
    this.#work.rest()
    this.#endText()
    line()
    for (const text of before) line(text)
    if (before.length > 0) line()
    if (stop._tag === "NeedsInput") line(`${paint.bold(this.#whole(stop.question))}\n`)
    if (stop._tag === "Limit" && stop.partialText !== undefined)
      line(`  ${paint.dim("(partial, cut at the token limit)")}\n`)
    const waits = stop._tag === "NeedsInput" || stop._tag === "AwaitingApproval"
    const rate = rateOf(this.#generated.tokens, this.#generated.millis)
    const colour = stop._tag === "Completed" ? paint.green : waits ? paint.cyan : paint.red
    const own = Math.max(0, millis.orchestration - this.#askedMillis)
    const answers = this.#askedMillis === 0 ? "" : `, your answers ${duration(this.#askedMillis)}`
    const spent = `${duration(millis.total)}: model ${duration(millis.model)}, tools ${duration(millis.tools)}, orchestration ${duration(own)}${answers}`
    if (stop._tag === "Completed") line(this.#sentence(`done in ${spent}`).replace("done", colour))
    else {
      line(colour(this.#sentence(stopText(stop))))
      line(this.#sentence(`it took ${spent}`))
    }
    const generated = `${count(usage.outputTokens, "token")} generated${rate === "" ? "" : ` at ${rate}`}`
    const made = `${count(turns, "turn")}, ${count(toolCalls, "call")}, ${generated}`
    line(paint.dim(this.#sentence(`${made}; loading took ${duration(this.#loadMillis)}`)))
    for (const { path, sha256 } of artifacts) {
      if (path === undefined) continue
      this.#field("artifact", inline(shown(path)))
      this.#field("", `sha256 ${sha256}`, paint.dim)
    }
    if (transcript !== undefined) this.#field("transcript", inline(shown(transcript)))
    if (tracePath === undefined) return
    this.#field("trace", inline(shown(tracePath)))
    if (continuing._tag === "Hint") line((waits ? paint.yellow : paint.dim)(this.#sentence(continuing.text)))
    if (continuing._tag === "Settle") line(paint.yellow(this.#sentence(lookFirst)))
    const commands = [
      ...(continuing._tag === "Settle" ? continuing.commands : []),
      ...(continuing._tag === "Command" ? [continuing.command, ...continuing.others] : []),
      `npx writ trace inspect ${quoted(shown(tracePath))}`
    ]
    for (const [at, command] of commands.entries()) this.#field(at === 0 ? "next" : "", inline(command), paint.bold)
  }
}
