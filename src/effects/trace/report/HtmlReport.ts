/**
 * A trace as one HTML page: reads the file once, judges it on the way, and keeps what the page shows. Texts, rows, calls and
 * turns have bounds, so the page of a long trace can still be opened; what is left out is said on it.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { ClaimCheck } from "../claims/ClaimCheck.ts"
import { eachChunk, type Item, Lines, maxLineBytes, type TraceReadError } from "../TraceReader.ts"
import { type Summary, Totals } from "../TraceTimeline.ts"
import { TraceValidator, type ValidateOptions, type Verdict } from "../TraceValidator.ts"
import { claimsBadge, claimsView } from "./AnswerClaims.ts"
import { Artifacts } from "./Artifacts.ts"
import { Bars } from "./Bars.ts"
import { Calls } from "./Calls.ts"
import { Conversation, conversation } from "./Conversation.ts"
import { EventTable } from "./EventTable.ts"
import { Gauges } from "./Gauges.ts"
import { LateTurns } from "./LateTurns.ts"
import { html, Room } from "./Markup.ts"
import { page } from "./Page.ts"
import { problems, Unread, verdictBadge } from "./Problems.ts"
import { Beginning, runSummary } from "./RunSummary.ts"
import { timeline } from "./Timeline.ts"

/** Characters of the conversation and of the events a page has room for. */
const conversationRoom = 8_000_000
const eventsRoom = 8_000_000

export interface Report {
  /** The page, in pieces. */
  readonly pieces: ReadonlyArray<string>
  readonly summary: Summary
  readonly verdict: Verdict
  readonly unreadable: number
}

/** Takes a trace's bytes and makes its page. `end` is for once. */
export class HtmlReport {
  readonly #options: ValidateOptions
  readonly #lines = new Lines(maxLineBytes, { sources: true })
  readonly #digest = createHash("sha256")
  readonly #validator: TraceValidator
  readonly #totals = new Totals()
  readonly #beginning = new Beginning()
  readonly #unread = new Unread()
  readonly #room = new Room(conversationRoom)
  readonly #bars = new Bars()
  readonly #calls = new Calls(this.#room)
  readonly #conversation = new Conversation(this.#room)
  readonly #late = new LateTurns()
  readonly #artifacts = new Artifacts(this.#room)
  readonly #gauges = new Gauges()
  readonly #claims = new ClaimCheck()
  readonly #table = new EventTable(new Room(eventsRoom))

  /** The artifacts directory of the options is also where previews come from. */
  constructor(options: ValidateOptions = {}) {
    this.#options = options
    this.#validator = new TraceValidator(options)
  }

  readonly push = (bytes: Uint8Array): void => {
    this.#digest.update(bytes)
    this.#lines.feed(bytes, this.#item)
  }

  readonly #item = (item: Item): void => {
    this.#validator.add(item)
    this.#unread.see(item)
    if (item._tag === "Unreadable") this.#claims.unreadable()
    if (item._tag === "Unreadable") return
    const { record } = item
    this.#totals.add(record)
    this.#beginning.see(record)
    this.#gauges.see(record)
    this.#claims.see(record)
    this.#artifacts.see(record)
    this.#table.see(record)
    this.#conversation.see(record)
    if (this.#conversation.full) this.#late.see(record)
    const about = this.#calls.see(record)
    if (about?.isNew === true) this.#conversation.call(about.call, record.step)
    // A turn that found no room brings no calls either.
    if (this.#conversation.more > 0) this.#calls.close()
    this.#bars.see(record, about?.call)
  }

  readonly end = (): Report => {
    for (const item of this.#lines.end()) this.#item(item)
    const verdict = this.#validator.end()
    const { summary } = this.#totals
    const directory = summary.content === false ? undefined : this.#options.artifacts
    const claims = this.#claims.end()
    const badges = html`${verdictBadge(verdict, summary.schema)} ${claimsBadge(claims)}`
    const run = this.#room.clip(summary.runIds[0] ?? "no run", 100).text
    const late = this.#conversation.more > 0 ? this.#late.conversation(this.#room) : undefined
    const anchors = new Set([...this.#conversation.anchors(), ...(late?.anchors() ?? [])])
    const pieces = page({
      title: `Run ${run}`,
      summary: html`${runSummary(summary, this.#beginning, badges, this.#room)}${claimsView(claims, this.#room)}`,
      timeline: timeline(this.#bars.end(), anchors),
      conversation: conversation(this.#conversation, late, this.#calls.more),
      artifacts: this.#artifacts.view(directory),
      limits: this.#gauges.view(),
      problems: problems(verdict, summary.schema, summary.status !== "unfinished", this.#unread),
      events: this.#table.view(),
      digest: this.#digest.digest("hex")
    })
    return { pieces: [...pieces], summary, verdict, unreadable: this.#unread.count }
  }
}

/** The report of a trace that is in memory. */
export const ofText = (text: string | Uint8Array, options: ValidateOptions = {}): Report => {
  const report = new HtmlReport(options)
  report.push(typeof text === "string" ? Buffer.from(text) : text)
  return report.end()
}

/** The report of a trace file. */
export const ofFile = (path: string, options: ValidateOptions = {}): Effect.Effect<Report, TraceReadError> =>
  Effect.suspend(() => {
    const report = new HtmlReport(options)
    return Effect.map(eachChunk(path, report.push), report.end)
  })
