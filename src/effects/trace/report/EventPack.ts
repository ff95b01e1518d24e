/**
 * Every event of a long trace, packed for the page's script: lines of fields between tabs, in blocks of gzip in base64. The
 * page reads without them; what they are for is search, and rows the script draws on demand. Text only: no markup comes
 * from here.
 */
import { gzipSync } from "node:zlib"
import { html, inLine, Markup, type Room } from "./Markup.ts"

/** Bytes of a block, and how hard it is pressed: time matters more than the last tenth of the size. */
const blockBytes = 512 * 1024
const level = 2

const shownText = 8_000
/** A character takes three bytes at most; besides its data a line has some hundred characters. */
const lineBytes = 3 * (shownText + 1_000)

export interface PackedRow {
  /** The place of its kind in `kindNames`. */
  readonly kind: number
  readonly failed: boolean
  readonly seq: number
  readonly seconds: string
  readonly place: string
  readonly type: string
  /** JSON, so on one line. */
  readonly data: string
}

export class EventPack {
  readonly #room: Room
  readonly #blocks: Array<Markup> = []
  /** The open block; lines are written into it as they come, so that no text of its size is ever made. */
  readonly #block = Buffer.allocUnsafeSlow(blockBytes)
  #length = 0

  constructor(room: Room) {
    this.#room = room
  }

  readonly add = ({ data, failed, kind, place, seconds, seq, type }: PackedRow): void => {
    const { text, note } = this.#room.clip(data, shownText)
    const whole = note === undefined ? "" : String(data.length)
    const named = `${inLine(place.slice(0, 80))}\t${inLine(type.slice(0, 80))}`
    if (this.#length + lineBytes > blockBytes) this.#close()
    const line = `${this.#length === 0 ? "" : "\n"}${kind}${failed ? "!" : " "}\t${whole}\t${seq}\t${seconds}\t${named}\t${text}`
    this.#length += this.#block.write(line, this.#length)
  }

  #close(): void {
    const packed = gzipSync(this.#block.subarray(0, this.#length), { level }).toString("base64")
    this.#blocks.push(html`<script type="application/gzip" class="pack">${new Markup(packed)}</script>
`)
    this.#length = 0
  }

  readonly end = (): ReadonlyArray<Markup> => {
    if (this.#length > 0) this.#close()
    return this.#blocks
  }
}
