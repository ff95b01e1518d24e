/** The artifacts of a run: names, hashes, and the beginning of those that are text and lie beside the trace unchanged. */
import type { TraceRecord } from "../TraceReader.ts"
import { ArtifactFiles, type Found } from "./ArtifactFiles.ts"
import { badge } from "./CallView.ts"
import { amount, content, isLeftOut, word } from "./Fields.ts"
import { html, type Markup, number, type Part, type Room } from "./Markup.ts"

/** Artifacts that are shown, and characters of a preview. */
const most = 500
const shownText = 4_000

interface Artifact {
  readonly id: unknown
  readonly name: unknown
  readonly sha256: string
  readonly size: number
  readonly type: string
  readonly producer: string
}

/** The bytes as text, if they are UTF-8 without a zero. */
const textOf = (bytes: Buffer): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const states = {
  verified: badge("good", "file has this hash"),
  differs: badge("bad", "the file is another one"),
  missing: badge("bad", "no such file beside the trace"),
  unchecked: badge("quiet", "file not looked at")
}

export class Artifacts {
  readonly #room: Room
  readonly #seen: Array<Artifact> = []
  #more = 0
  /** Redaction rules were in force. They are about records, and what is in the files they never saw. */
  #ruled = false

  constructor(room: Room) {
    this.#room = room
  }

  readonly see = ({ data, event_type: type, redacted }: TraceRecord): void => {
    if (type === "run_started") this.#ruled ||= data["redact"] !== undefined
    if (type !== "artifact_written") return
    if (this.#seen.length >= most) {
      this.#more += 1
      return
    }
    this.#seen.push({
      // What was redacted is the name of no file.
      id: redacted === undefined ? data["artifact_id"] : undefined,
      name: data["name"] ?? data["artifact_id"],
      sha256: word(data["sha256"]).slice(0, 200),
      size: amount(data["size_bytes"] ?? data["bytes"]),
      type: content(data["media_type"]).slice(0, 200),
      producer: word(data["producer_tool"]).slice(0, 200)
    })
  }

  get count(): number {
    return this.#seen.length + this.#more
  }

  /** `directory` is where the files are, or undefined where there are none to look at. */
  readonly view = (directory: string | undefined): Markup => {
    if (this.#seen.length === 0) return html`<p class="quiet">The run wrote no artifacts.</p>`
    const files = directory === undefined ? undefined : new ArtifactFiles(directory)
    return html`${this.#seen.map((artifact) => this.#card(artifact, this.#find(artifact, files)))}${
      this.#more === 0 ? undefined : html`<p class="cut">${number(this.#more)} more are not shown here.</p>`
    }`
  }

  #find({ id, sha256 }: Artifact, files: ArtifactFiles | undefined): Found {
    // Without content the record does not name its files, and what is in them is nobody's business here.
    if (files === undefined || isLeftOut(id) || typeof id !== "string") return { state: "unchecked" }
    return files.find(id, sha256)
  }

  #preview(found: Found): Part {
    if (found.state !== "verified") return undefined
    if (this.#ruled) return html`<p class="quiet">Recorded under redaction rules: no preview.</p>`
    const text = textOf(found.bytes)
    if (text === undefined) return html`<p class="quiet">Not text: no preview.</p>`
    return html`<details><summary>Preview</summary>${this.#room.box(text, shownText)}</details>`
  }

  #card(artifact: Artifact, found: Found): Markup {
    const { name, producer, sha256, size, type } = artifact
    return html`<div class="artifact"><h3><code>${this.#room.line(content(name), 300)}</code></h3>
<p class="badges">${states[found.state]} ${badge("quiet", `${number(size)} bytes`)} ${badge("quiet", type)} ${badge("quiet", `by ${producer}`)}</p>
<p class="hash">SHA-256 <code>${sha256}</code></p>${this.#preview(found)}</div>
`
  }
}
