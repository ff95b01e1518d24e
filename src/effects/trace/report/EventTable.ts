/**
 * Every event as a row. A short trace's rows are all on the page, in portions that a browser can leave undrawn. Of a long one
 * the beginning and the end are, for who reads without scripts, and the page's script gets all of them packed.
 */
import type { TraceRecord } from "../TraceReader.ts"
import { EventPack } from "./EventPack.ts"
import { html, json, type Markup, number, Room } from "./Markup.ts"

/** Rows on the page, from the beginning and from the end. */
export const firstRows = 1_500
export const lastRows = 500
/** Rows that are packed; of a trace that is longer still, these and the last ones. */
const mostPacked = 500_000
/** Rows of a portion. */
const portion = 100

/** Characters of data that all packed rows have room for. */
const packRoom = 64_000_000
const shownText = 400
const unfoldedText = 8_000

/** What a filter can ask for. */
const kinds: ReadonlyArray<readonly [kind: string, types: RegExp]> = [
  ["model", /^(?:model_call|generation|turn_|assistant_|candidate_)/],
  ["tools", /^(?:tool_|artifact_|late_|call_skipped|effect_|retry_)/],
  ["checks", /^(?:legality|approval|precondition|proposal_)/],
  ["run", /^(?:run_|provenance)/]
]

/** In the order of the filter. */
export const kindNames: ReadonlyArray<string> = [...kinds.map(([kind]) => kind), "context"]

const known = new Map<string, number>()

const kindOf = (type: string): number => {
  const before = known.get(type)
  if (before !== undefined) return before
  const found = kinds.findIndex(([, types]) => types.test(type))
  const kind = found < 0 ? kinds.length : found
  // Types are few, unless somebody made them up.
  if (known.size < 1_000) known.set(type, kind)
  return kind
}

const bad = new Set(["tool_call_rejected", "turn_rolled_back", "run_failed", "call_skipped", "tool_result_uncommitted"])

const hasFailed = ({ data, event_type }: TraceRecord): boolean => bad.has(event_type) || data["ok"] === false

const secondsOf = (record: TraceRecord): string => (Number(record.t_ms) / 1000).toFixed(3)

const placeOf = ({ phase, step }: TraceRecord): string => (phase === null ? step : `${step} · ${phase}`)

export interface Events {
  readonly rows: ReadonlyArray<Markup>
  /** For the script; empty where all rows are on the page. */
  readonly packed: ReadonlyArray<Markup>
  readonly count: number
  readonly shown: number
  /** Rows that are neither on the page nor packed. */
  readonly missing: number
}

export class EventTable {
  readonly #room: Room
  readonly #pack = new EventPack(new Room(packRoom))
  readonly #first: Array<Markup> = []
  /** A ring of the newest records after the first rows. */
  readonly #last: Array<TraceRecord> = []
  #count = 0

  constructor(room: Room) {
    this.#room = room
  }

  readonly see = (record: TraceRecord): void => {
    this.#count += 1
    const inPack = this.#count <= mostPacked
    if (this.#count > firstRows) {
      this.#last[(this.#count - firstRows - 1) % lastRows] = record
      if (inPack) this.#packs(record, json(record.data))
      return
    }
    const data = json(record.data)
    this.#packs(record, data)
    this.#first.push(this.#row(record, data))
  }

  #packs(record: TraceRecord, data: string): void {
    const { event_type: type, seq } = record
    const [place, seconds] = [placeOf(record), secondsOf(record)]
    this.#pack.add({ kind: kindOf(type), failed: hasFailed(record), seq, seconds, place, type, data })
  }

  #row(record: TraceRecord, data: string): Markup {
    const { event_type: type, seq } = record
    const failed = hasFailed(record) ? " failed" : ""
    return html`<tr class="k-${kindNames[kindOf(type)]}${failed}" id="event-${seq}"><td class="n">${seq}</td><td class="n">${secondsOf(record)}</td><td>${this.#room.line(placeOf(record), 80)}</td><td>${this.#room.line(type, 80)}</td><td class="data">${this.#data(data)}</td></tr>
`
  }

  #data(text: string): Markup {
    if (text.length <= shownText) return this.#room.line(text, shownText)
    const start = new Room(0).clip(text, 120).text
    return html`<details><summary>${start}…</summary>${this.#room.box(text, unfoldedText)}</details>`
  }

  readonly view = (): Events => {
    const beyond = Math.max(0, this.#count - firstRows)
    const start = beyond > lastRows ? beyond % lastRows : 0
    const newest = [...this.#last.slice(start), ...this.#last.slice(0, start)]
    const left = beyond - newest.length
    const unpacked = Math.max(0, this.#count - mostPacked)
    for (const record of newest.slice(Math.max(0, newest.length - unpacked))) this.#packs(record, json(record.data))
    const rows = newest.map((record) => this.#row(record, json(record.data)))
    return {
      rows: [...portions(this.#first), ...(left > 0 ? [cut(left)] : []), ...portions(rows)],
      packed: left > 0 ? this.#pack.end() : [],
      count: this.#count,
      shown: this.#first.length + rows.length,
      missing: Math.max(0, unpacked - newest.length)
    }
  }
}

const cut = (left: number): Markup =>
  html`<p class="cut">${number(left)} events between these are not shown without the page’s script; writ trace inspect lists them.</p>
`

const head = html`<thead><tr><th scope="col">Seq</th><th scope="col">Seconds</th><th scope="col">Step</th><th scope="col">Event</th><th scope="col">Data</th></tr></thead>`

function* portions(rows: ReadonlyArray<Markup>): Iterable<Markup> {
  for (let at = 0; at < rows.length; at += portion) {
    yield html`<div class="portion"><table>${head}<tbody>
${rows.slice(at, at + portion)}</tbody></table></div>
`
  }
}
