/** Every event as a row, in portions that a browser can leave undrawn. Of a long trace the beginning and the end. */
import type { TraceRecord } from "../TraceReader.ts"
import { html, json, type Markup, number, Room } from "./Markup.ts"

/** Rows from the beginning, and from the end. */
export const firstRows = 10_000
export const lastRows = 1_000
/** Rows of a portion. */
const portion = 100

const shownText = 400
const unfoldedText = 8_000

/** What a filter can ask for. */
const kinds: ReadonlyArray<readonly [kind: string, types: RegExp]> = [
  ["model", /^(?:model_call|generation|turn_|assistant_)/],
  ["tools", /^(?:tool_|artifact_|late_|call_skipped|effect_)/],
  ["checks", /^(?:legality|approval)/],
  ["run", /^(?:run_|provenance)/]
]

const kindOf = (type: string): string => kinds.find(([, types]) => types.test(type))?.[0] ?? "context"

/** In the order of the filter. */
export const kindNames: ReadonlyArray<string> = [...kinds.map(([kind]) => kind), "context"]

const bad = new Set(["tool_call_rejected", "turn_rolled_back", "run_failed", "call_skipped", "tool_result_uncommitted"])

export class EventTable {
  readonly #room: Room
  readonly #first: Array<Markup> = []
  /** A ring of the newest records after the first rows. */
  readonly #last: Array<TraceRecord> = []
  #count = 0

  constructor(room: Room) {
    this.#room = room
  }

  readonly see = (record: TraceRecord): void => {
    this.#count += 1
    if (this.#count <= firstRows) this.#first.push(this.#row(record))
    else this.#last[(this.#count - firstRows - 1) % lastRows] = record
  }

  #row(record: TraceRecord): Markup {
    const { data, event_type: type, phase, seq, step, t_ms } = record
    const text = json(data)
    const place = phase === null ? step : `${step} · ${phase}`
    const failed = bad.has(type) || data["ok"] === false ? " failed" : ""
    return html`<tr class="k-${kindOf(type)}${failed}"><td class="n">${seq}</td><td class="n">${(Number(t_ms) / 1000).toFixed(3)}</td><td>${this.#room.line(place, 80)}</td><td>${this.#room.line(type, 80)}</td><td class="data">${this.#data(text)}</td></tr>
`
  }

  #data(text: string): Markup {
    if (text.length <= shownText) return this.#room.line(text, shownText)
    const start = new Room(0).clip(text, 120).text
    return html`<details><summary>${start}…</summary>${this.#room.box(text, unfoldedText)}</details>`
  }

  readonly view = (): { readonly rows: ReadonlyArray<Markup>; readonly count: number; readonly shown: number } => {
    const beyond = Math.max(0, this.#count - firstRows)
    const start = beyond > lastRows ? beyond % lastRows : 0
    const newest = [...this.#last.slice(start), ...this.#last.slice(0, start)].map((record) => this.#row(record))
    const left = beyond - newest.length
    const cut = html`<p class="cut">${number(left)} events are left out here. The trace has them; writ trace inspect lists them.</p>
`
    return {
      rows: [...portions(this.#first), ...(left > 0 ? [cut] : []), ...portions(newest)],
      count: this.#count,
      shown: this.#first.length + newest.length
    }
  }
}

const head = html`<thead><tr><th scope="col">Seq</th><th scope="col">Seconds</th><th scope="col">Step</th><th scope="col">Event</th><th scope="col">Data</th></tr></thead>`

function* portions(rows: ReadonlyArray<Markup>): Iterable<Markup> {
  for (let at = 0; at < rows.length; at += portion) {
    yield html`<div class="portion"><table>${head}<tbody>
${rows.slice(at, at + portion)}</tbody></table></div>
`
  }
}
