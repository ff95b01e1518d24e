/**
 * Keeps the file up with the run that fills one of its slots. Told of each step before the next one begins (`Watch`), it puts
 * the turn into its slot before a call of it is looked at, each result into the tool message as soon as it is there for good,
 * and a fresh slot behind the results; every change is saved. A file that cannot be saved stops the run.
 */
import * as Effect from "effect/Effect"
import { flatten } from "../../engine/Prompt.ts"
import { answerText } from "../../tools/ToolCall.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import { type CallRecord, openingOptions, type RunContext, round3, type Watch } from "../RunContext.ts"
import type { State, Stop } from "../State.ts"
import type { Entry } from "../Transcript.ts"
import { type Artifact, artifactEvents, callEvent, isSettled } from "./CallEvents.ts"
import { callsOf, type Message, type ToolResultBlock, turnEvents } from "./Conversation.ts"
import type { ConversationError } from "./ConversationError.ts"
import { spokenOf } from "./History.ts"
import { toldAs } from "./Results.ts"
import { resultsOf } from "./Slots.ts"
import * as TurnMessage from "./TurnMessage.ts"
import type { Voice } from "./Voice.ts"

type AssistantEntry = Extract<Entry, { readonly kind: "assistant" }>

export interface RecordingOptions {
  /** The conversation; changed in place. */
  readonly messages: Array<Message>
  /** The slot to fill, or the turn whose calls are open. */
  readonly at: number
  readonly open: boolean
  /** What the file calls the model. */
  readonly model: string
  readonly voice: Voice | undefined
  /** The name of the effects' keys, where a tool of this conversation can act and no turn of the slot says it yet. */
  readonly keyed: string | undefined
  /** Artifacts that an earlier process left and no turn has, for a call that the ledger knew. */
  readonly leftBehind: (known: ReadonlySet<string>) => ReadonlyArray<Artifact>
  readonly save: Effect.Effect<void, ConversationError>
}

const unsaved = ({ message }: ConversationError): Stop => ({ _tag: "Failed", class: "conversation", message })

export class Recording {
  readonly #options: RecordingOptions
  /** Where the next turn goes, or the turn that waits for results. */
  #at: number
  #open: boolean
  /** Entries of the session's transcript that were looked at. */
  #seen = 0
  /** Turns that were no call and no answer, since the last one that was. */
  #malformed: Array<{ readonly text: string; code: string; told: string }> = []
  #unsaved = false
  #counted = { outputTokens: 0, engineMillis: 0, generations: 0 }
  readonly #artifacts = new Map<string, Array<Artifact>>()

  constructor(options: RecordingOptions) {
    this.#options = options
    this.#at = options.at
    this.#open = options.open
  }

  /** The file is not what it should be, because it cannot be written. */
  get unsaved(): boolean {
    return this.#unsaved
  }

  /** The slot that was filled, or is to be filled next. */
  get at(): number {
    return this.#at
  }

  readonly hear = (event: AgentEvent): void => {
    if (event._tag !== "ArtifactWritten") return
    const list = this.#artifacts.get(event.callId) ?? []
    list.push(event.artifact)
    this.#artifacts.set(event.callId, list)
  }

  readonly watch: Watch = (run, after, next) =>
    Effect.catch(
      Effect.as(
        Effect.suspend(() => this.#step(run, after, next)),
        undefined
      ),
      (error) => {
        this.#unsaved = true
        return Effect.succeed(unsaved(error))
      }
    )

  #step(run: RunContext, after: Parameters<Watch>[1], next: State): Effect.Effect<void, ConversationError> {
    const { entries } = run.session.transcript
    switch (after) {
      case "Preparing":
        // What was restored is in the file already.
        this.#seen = entries.length
        return Effect.void
      case "Generating":
        return entries.length > this.#seen ? this.#turn(run, next) : Effect.void
      case "Admitting":
      case "Acting":
        return this.#results(run.open?.records ?? [], undefined)
      case "Committing": {
        this.#seen = entries.length
        const { queued } = run
        if (queued === undefined) return this.#results(run.session.owed?.turn.records ?? [], undefined)
        if (queued.turn.feedback !== undefined)
          return this.#feedback(queued.turn.feedback.code, queued.answers[0]!.text)
        const told = queued.answers.map(({ text }) => text)
        return Effect.map(this.#results(queued.turn.records, told), () => {
          this.#at += 2
          this.#open = false
        })
      }
    }
  }

  #feedback(code: string, told: string): Effect.Effect<void> {
    return Effect.sync(() => {
      const last = this.#malformed.at(-1)
      if (last === undefined) return
      last.code = code
      last.told = told
    })
  }

  #turn(run: RunContext, next: State): Effect.Effect<void, ConversationError> {
    const { entries } = run.session.transcript
    const entry = entries.at(-1)
    this.#seen = entries.length
    if (entry?.kind !== "assistant" || entry.turn === "partial") return Effect.void
    if (entry.turn === "malformed") {
      this.#malformed.push({ text: entry.raw, code: "", told: "" })
      return Effect.void
    }
    const { messages, save, voice } = this.#options
    const scripted = voice?.said() ?? {}
    return Effect.flatMap(this.#inputOf(run, entry), (input) => {
      const message = TurnMessage.messageOf(entry, this.#at, scripted)
      const { engineMillis, generations, outputTokens } = run.budget
      const before = this.#counted
      this.#counted = { engineMillis, generations, outputTokens }
      const cost: TurnMessage.Cost = {
        spanId: voice?.spanId() ?? `turn-${this.#at}`,
        model: this.#options.model,
        input: voice === undefined ? input : 0,
        output: voice === undefined ? outputTokens - before.outputTokens : 0,
        millis: round3(engineMillis - before.engineMillis)
      }
      const events = this.#eventsOf(run, entry, message, generations - before.generations, next)
      const trace = scripted.trace ?? TurnMessage.traceOf(cost, events)
      messages[this.#at] = { ...message, ...(messages[this.#at]?.cache === true ? { cache: true } : {}), trace }
      this.#open = entry.turn === "calls"
      this.#malformed = []
      return save
    })
  }

  /** Tokens before the first generated one. An engine that cannot say so is at fault elsewhere. */
  #inputOf(run: RunContext, { span }: AssistantEntry): Effect.Effect<number> {
    if (this.#options.voice !== undefined) return Effect.succeed(0)
    const opening = run.session.codec.opening(optionsBefore(run))
    return Effect.orElseSucceed(
      Effect.map(run.session.context.measure(opening), (size) => span.start + size),
      () => span.start
    )
  }

  #eventsOf(run: RunContext, entry: AssistantEntry, message: Message, generations: number, next: State) {
    const { event } = TurnMessage
    const { keyed } = this.#options
    const events = this.#malformed.map(({ code, text, told }) => event(turnEvents.malformed, { code, text, told }))
    if (generations !== 1 + events.length) events.push(event(turnEvents.engineTurns, { count: generations }))
    const written = flatten(run.session.codec.written(spokenOf(message), optionsBefore(run)))
    if (written !== entry.raw) events.push(event(turnEvents.generated, { text: entry.raw }))
    if (keyed !== undefined && entry.turn === "calls" && this.#at === this.#options.at) {
      events.push(event(turnEvents.keyed, { under: keyed }))
    }
    if (next._tag === "Done" && next.stop._tag === "Completed")
      events.push(event(turnEvents.end, { state: "completed" }))
    return events
  }

  /** `told`: what the model reads, once that is decided for all calls. Until then a result is what the call came to. */
  #results(
    records: ReadonlyArray<CallRecord>,
    told: ReadonlyArray<string> | undefined
  ): Effect.Effect<void, ConversationError> {
    const { messages, save } = this.#options
    const turn = messages[this.#at]
    if (!this.#open || turn === undefined) return Effect.void
    const before = resultsOf(messages[this.#at + 1])
    const blocks: Array<ToolResultBlock> = []
    const said = turn.trace?.events ?? []
    const events = said.filter((event) => !isOfCall(event))
    // The script's own trace stays as it is.
    const verbatim = this.#options.voice?.said().trace !== undefined
    for (const [ordinal, { id, name }] of callsOf(turn).entries()) {
      const known = before.find(({ tool_use_id }) => tool_use_id === id)
      const own = said.filter((event) => isOfCall(event) && event.attributes["id"] === id)
      const [record, final] = [records[ordinal], told?.[ordinal]]
      const fresh =
        record !== undefined && isSettled(record) && (known === undefined || (final !== undefined && ran(record)))
      if (!fresh) {
        if (known !== undefined) blocks.push(known)
        events.push(...own)
        continue
      }
      const as = toldAs(id, final ?? answerText(record.answer!))
      blocks.push(as.block)
      events.push(...(own.length > 0 ? own : [callEvent(id, record, as)]))
      if (own.length === 0) events.push(...artifactEvents(id, name, this.#artifactsOf(record, turn)))
    }
    // Once all of it is in the file, that it is told changes nothing, unless it was too long to be told whole.
    if (blocks.length === 0 || JSON.stringify(blocks) === JSON.stringify(before)) return Effect.void
    if (!verbatim) messages[this.#at] = TurnMessage.withEvents(turn, events)
    this.#put(blocks)
    return save
  }

  #artifactsOf(record: CallRecord, turn: Message): ReadonlyArray<Artifact> {
    const own = this.#artifacts.get(record.callId)
    if (own !== undefined || record.replayed === undefined) return own ?? []
    const said = [...this.#options.messages, turn].flatMap(({ trace }) => trace?.events ?? [])
    const known = said.flatMap(({ attributes, name }) =>
      name === turnEvents.artifact ? [`${attributes["sha256"]} ${attributes["name"]}`] : []
    )
    return this.#options.leftBehind(new Set(known))
  }

  /** The results behind their turn, and behind them the slot that comes next. */
  #put(content: ReadonlyArray<ToolResultBlock>): void {
    const { messages } = this.#options
    const after = this.#at + 1
    const before = messages[after]
    if (before?.role === "tool") messages[after] = { ...before, content }
    else messages.splice(after, 0, { role: "tool", content }, { role: "assistant" })
    if (messages[after + 1]?.role !== "assistant") messages.splice(after + 1, 0, { role: "assistant" })
  }
}

const isOfCall = ({ name }: TurnMessage.TurnEvent): boolean => name === turnEvents.call || name === turnEvents.artifact

/** Did something come of it in this process? Otherwise its answer is the one the file had. */
const ran = ({ outcome, replayed }: CallRecord): boolean => outcome !== undefined || replayed !== undefined

/** The options of the last turn's opening. */
const optionsBefore = (run: RunContext) => {
  const before = run.session.transcript.entries.at(-2)
  return { ...openingOptions(run), after: afterOf(before?.kind) }
}

const afterOf = (kind: Entry["kind"] | undefined): "answers" | "user" =>
  kind === "tool" || kind === "feedback" ? "answers" : "user"
