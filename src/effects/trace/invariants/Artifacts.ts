/** T33 and T34: artifacts in the trace, and the files they are. */
import { createHash } from "node:crypto"
import { closeSync, lstatSync, openSync, readdirSync, readSync } from "node:fs"
import { join } from "node:path"
import type { Content, EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, OpenCall, RunFacts } from "./RunFacts.ts"

/** What the trace says of one file. `id` only where content is on. */
interface Expected {
  readonly id: string | undefined
  readonly sha256: string
  readonly bytes: number
}

const idText = (id: Content): string => (typeof id === "string" ? id : id.hmac)

export class Artifacts {
  readonly #findings: Findings
  readonly #facts: RunFacts
  readonly #expected = new Map<string, Expected>()

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    if (record.event_type === "artifact_written") this.#written(record.step, record.data)
    if (record.event_type === "tool_execution_finished") this.#finished(record.data)
  }

  #written(step: string, data: EventData<"artifact_written">) {
    const { unless } = this.#findings
    const { counts, open } = this.#facts
    const { artifact_id, call: id, name, producer_tool, sha256, size_bytes } = data
    counts.artifacts += 1
    const call = open?.calls.find((one) => one.call === id)
    const running = call?.execution === "running" && call.step === step
    const whole = call !== undefined && open?.step === step && hasResult(call)
    const byIts = call?.tool === undefined || call.tool === producer_tool
    unless((running || whole) && byIts, "T33", () => `an artifact of ${id} in step ${step}, which does not run there`)
    const derived =
      typeof artifact_id !== "string" || typeof name !== "string" || artifact_id === `${sha256.slice(0, 16)}-${name}`
    unless(derived, "T33", () => `the id of an artifact of ${id} is not made of its hash and name`)
    if (running) call.artifacts.push(idText(artifact_id))
    const exact = typeof artifact_id === "string" ? artifact_id : undefined
    this.#expected.set(`${sha256}\n${idText(artifact_id)}`, { id: exact, sha256, bytes: size_bytes })
  }

  #finished({ artifact_ids, call: id }: EventData<"tool_execution_finished">) {
    const written = this.#facts.open?.calls.find((one) => one.call === id)?.artifacts ?? []
    const same = artifact_ids.length === written.length && artifact_ids.every((one, at) => idText(one) === written[at])
    this.#findings.unless(
      same,
      "T33",
      () => `${id} names ${artifact_ids.length} artifacts, ${written.length} were written`
    )
  }

  /**
   * Compares with what is in `directory`. A file that no event mentions is a fault of a run that ended; a run that was
   * killed may have left one it did not come to mention.
   * @param others hashes that other traces of the directory mention; undefined: do not ask about other files
   */
  readonly compare = (directory: string, others: ReadonlySet<string> | undefined): void => {
    const { add } = this.#findings
    const files = filesIn(directory)
    for (const { bytes, id, sha256 } of this.#expected.values()) {
      const found = files.find((file) => file.name === id || (id === undefined && file.sha256 === sha256))
      if (found === undefined)
        add("T34", `${id ?? `the artifact ${sha256.slice(0, 16)}`} is not in the run's artifacts`)
      else if (found.sha256 !== sha256 || found.bytes !== bytes || !found.name.startsWith(sha256.slice(0, 16))) {
        add("T34", `${found.name} is not what was written: ${found.bytes} bytes, ${bytes} expected`)
      }
    }
    if (others === undefined) return
    const mentioned = new Set([...this.#expected.values()].map((one) => one.sha256))
    for (const { name, sha256 } of files) {
      if (!mentioned.has(sha256) && !others.has(sha256))
        add("T34", `${name} is in the run's artifacts, and no event mentions it`)
    }
  }
}

/** Has the call a result that could be too long to be shown whole? */
const hasResult = (call: OpenCall): boolean =>
  (call.execution === "finished" && call.ok) || call.settled?.replayed === true || call.inherited

interface Found {
  readonly name: string
  readonly sha256: string
  readonly bytes: number
}

const chunk = 1024 * 1024

const digestOf = (path: string): string => {
  const digest = createHash("sha256")
  const buffer = Buffer.allocUnsafe(chunk)
  const fd = openSync(path, "r")
  try {
    for (let read = readSync(fd, buffer); read > 0; read = readSync(fd, buffer)) digest.update(buffer.subarray(0, read))
  } finally {
    closeSync(fd)
  }
  return digest.digest("hex")
}

/** The plain files of a directory; a link or a folder is there as something no event can have written. */
const filesIn = (directory: string): ReadonlyArray<Found> => {
  if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  return readdirSync(directory).map((name) => {
    const path = join(directory, name)
    const stat = lstatSync(path)
    return stat.isFile() ? { name, sha256: digestOf(path), bytes: stat.size } : { name, sha256: "", bytes: 0 }
  })
}
