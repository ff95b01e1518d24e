/**
 * Judges a trace: replays the state machine over its events and names every invariant that does not hold (docs/trace.md
 * lists them by number). One pass, any length; what is kept is the state of one run. Reads the trace and, if told where they
 * are, the artifacts; judges nothing else and repairs nothing.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { schemaId } from "../../actors/TraceEvent.ts"
import { concealed } from "./Concealed.ts"
import { Admission } from "./invariants/Admission.ts"
import { Answers } from "./invariants/Answers.ts"
import { Artifacts } from "./invariants/Artifacts.ts"
import { ChildRuns } from "./invariants/ChildRuns.ts"
import { Choices } from "./invariants/Choices.ts"
import { Compactions } from "./invariants/Compactions.ts"
import { Context } from "./invariants/Context.ts"
import { Ending } from "./invariants/Ending.ts"
import { Envelope } from "./invariants/Envelope.ts"
import { Executions } from "./invariants/Executions.ts"
import { Findings, type Violation } from "./invariants/Findings.ts"
import { Frame } from "./invariants/Frame.ts"
import type { InvariantId } from "./invariants/Invariants.ts"
import { Legality } from "./invariants/Legality.ts"
import { LimitsKept } from "./invariants/LimitsKept.ts"
import { Phasing } from "./invariants/Phasing.ts"
import { Redactions } from "./invariants/Redactions.ts"
import { Restarts } from "./invariants/Restarts.ts"
import { type KnownRecord, RunFacts } from "./invariants/RunFacts.ts"
import { Samples } from "./invariants/Samples.ts"
import { Tries } from "./invariants/Tries.ts"
import { Turns } from "./invariants/Turns.ts"
import { indiscretion, isKnown, misfit } from "./invariants/Vocabulary.ts"
import { Wording } from "./invariants/Wording.ts"
import {
  type Event,
  eachChunk,
  type Item,
  Lines,
  maxLineBytes,
  type TraceReadError,
  type Unreadable,
  unknownSchema
} from "./TraceReader.ts"

export type { Violation } from "./invariants/Findings.ts"
export { type InvariantId, invariants } from "./invariants/Invariants.ts"

export interface ValidateOptions {
  /** The directory of the run's artifacts. Without it files are not looked at. */
  readonly artifacts?: string
  /** SHA-256 of files there that other traces mention: a run that was resumed shares the directory with its parts. */
  readonly mentionedElsewhere?: ReadonlySet<string>
  /** Files that no event mentions are no fault. */
  readonly allowStrays?: boolean
}

export interface Verdict {
  /** No invariant is broken. An incomplete trace can be ok. */
  readonly ok: boolean
  /** There is a terminal event. Without one the process died, was killed, or is still at it. */
  readonly complete: boolean
  /** The file ends inside its last line. */
  readonly cut: boolean
  readonly runId: string | undefined
  /** The first hundred; `violationCount` counts all. */
  readonly violations: ReadonlyArray<Violation>
  readonly violationCount: number
  /** Invariants nobody could judge: no bytes for the chain, no directory for files, events that could not be read. */
  readonly unjudged: ReadonlyArray<InvariantId>
  readonly counts: {
    readonly events: number
    readonly turns: number
    readonly toolCalls: number
    readonly rejected: number
    readonly skipped: number
    readonly artifacts: number
    readonly outputTokens: number
  }
}

/** Judges item by item. `end` gives the verdict, once. */
export class TraceValidator {
  readonly #options: ValidateOptions
  readonly #findings = new Findings()
  readonly #facts = new RunFacts()
  readonly #envelope = new Envelope(this.#findings)
  readonly #frame = new Frame(this.#findings, this.#facts)
  readonly #artifacts = new Artifacts(this.#findings, this.#facts)
  readonly #turns = new Turns(this.#findings, this.#facts)
  readonly #tries = new Tries(this.#findings, this.#facts)
  readonly #executions = new Executions(this.#findings, this.#facts)
  readonly #wording = new Wording(this.#findings, this.#facts)
  readonly #answers = new Answers(this.#findings, this.#facts)
  readonly #redactions = new Redactions(this.#findings, this.#facts)
  readonly #ending = new Ending(this.#findings, this.#facts)
  /** In the order in which they may rely on each other's facts. */
  readonly #parts: ReadonlyArray<{ readonly see: (record: KnownRecord) => void }> = [
    this.#artifacts,
    new Compactions(this.#findings, this.#facts),
    new Phasing(this.#findings, this.#facts),
    new Context(this.#findings, this.#facts),
    new Samples(this.#findings, this.#facts),
    this.#turns,
    new Admission(this.#findings, this.#facts),
    new Legality(this.#findings, this.#facts),
    new Choices(this.#findings, this.#facts),
    this.#executions,
    new ChildRuns(this.#findings, this.#facts),
    this.#tries,
    this.#wording,
    this.#answers,
    new LimitsKept(this.#findings, this.#facts),
    new Restarts(this.#findings)
  ]
  readonly #isName = (text: string): boolean => this.#facts.tools.has(text)
  #events = 0
  #cut = false
  /** An event could not be read: what follows cannot be judged by what went before, only by itself. */
  #lost = false

  constructor(options: ValidateOptions = {}) {
    this.#options = options
  }

  readonly add = (item: Item) => {
    const findings = this.#findings
    findings.line = item.line
    if (item._tag === "Unreadable") return this.#unreadable(item)
    const { record } = item
    findings.seq = record.seq
    this.#events += 1
    this.#envelope.see(item)
    if (record.schema !== schemaId) this.#lost = true
    else this.#meaning(item)
  }

  #unreadable(item: Unreadable) {
    const { add } = this.#findings
    this.#findings.seq = undefined
    if (item.cut && this.#facts.terminal === undefined) {
      this.#cut = true
      return
    }
    this.#envelope.skip()
    this.#lost = true
    if (this.#facts.terminal !== undefined) add("T11", `there is more after ${this.#facts.terminal}`)
    else add(item.reason === unknownSchema ? "T02" : "T01", `the line cannot be read: ${item.reason}`)
  }

  #meaning({ record }: Event) {
    const { add } = this.#findings
    const { event_type: type } = record
    if (!isKnown(type)) return add("T07", `${type} is no event of ${schemaId}`)
    const complaint = misfit(type, record.data)
    if (complaint !== undefined) {
      this.#lost = true
      return add("T08", `${type}: ${complaint}`)
    }
    const whole = record.redacted === undefined ? record : concealed(record)
    const known = whole as unknown as KnownRecord
    this.#frame.see(known, this.#events - 1)
    if (record.redacted !== undefined) this.#redactions.see(record)
    const clear = this.#facts.started?.content
    const field = clear === undefined ? undefined : indiscretion(type, whole.data, clear, this.#isName)
    if (field !== undefined) add("T09", `${type}.${field} is ${clear === true ? "hidden" : "in the clear"}`)
    if (this.#lost || this.#frame.over) return
    if (this.#facts.terminal === type) this.#atEnd(known)
    else for (const part of this.#parts) part.see(known)
  }

  #atEnd(record: KnownRecord) {
    for (const part of [this.#turns, this.#executions, this.#answers]) part.end()
    this.#wording.end(record)
    this.#tries.end(record)
    this.#ending.see(record)
  }

  readonly end = (): Verdict => {
    const { artifacts, allowStrays, mentionedElsewhere } = this.#options
    const findings = this.#findings
    const complete = this.#facts.terminal !== undefined
    findings.line = undefined
    findings.seq = undefined
    if (artifacts !== undefined && !this.#lost) {
      const strays = complete && allowStrays !== true
      this.#artifacts.compare(artifacts, strays ? (mentionedElsewhere ?? new Set()) : undefined)
    }
    return {
      ok: findings.count === 0,
      complete,
      cut: this.#cut,
      runId: this.#envelope.runId,
      violations: findings.kept,
      violationCount: findings.count,
      unjudged: this.#unjudged(artifacts !== undefined),
      counts: { events: this.#events, ...this.#facts.counts }
    }
  }

  #unjudged(files: boolean): ReadonlyArray<InvariantId> {
    const chain: ReadonlyArray<InvariantId> = this.#envelope.chained ? [] : ["T05"]
    return files && !this.#lost ? chain : [...chain, "T34"]
  }
}

/** Judges items as the reader gives them; with `sources` on, the chain too. */
export const validate = <E, R>(
  items: Stream.Stream<Item, E, R>,
  options: ValidateOptions = {}
): Effect.Effect<Verdict, E, R> =>
  Effect.suspend(() => {
    const validator = new TraceValidator(options)
    const take = (some: ReadonlyArray<Item>) => Effect.sync(() => some.forEach(validator.add))
    return Effect.map(Stream.runForEachArray(items, take), validator.end)
  })

/** Lines out of bytes, straight into a validator. */
const feeding = (options: ValidateOptions) => {
  const validator = new TraceValidator(options)
  const lines = new Lines(maxLineBytes, { sources: true })
  return {
    push: (bytes: Uint8Array): void => {
      lines.feed(bytes, validator.add)
    },
    end: (): Verdict => {
      for (const item of lines.end()) validator.add(item)
      return validator.end()
    }
  }
}

/** Judges a trace file. */
export const validateFile = (path: string, options: ValidateOptions = {}): Effect.Effect<Verdict, TraceReadError> =>
  Effect.suspend(() => {
    const { end, push } = feeding(options)
    return Effect.map(eachChunk(path, push), end)
  })

/** How much of a trace in memory is taken apart at a time: items of a whole one would only keep the collector busy. */
const portion = 64 * 1024

/** Judges a trace that is in memory, as a file would hold it. */
export const validateText = (text: string | Uint8Array, options: ValidateOptions = {}): Verdict => {
  const bytes = typeof text === "string" ? Buffer.from(text) : text
  const { end, push } = feeding(options)
  for (let at = 0; at < bytes.length; at += portion) push(bytes.subarray(at, at + portion))
  return end()
}
