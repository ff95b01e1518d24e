/** T02 to T06: identity, order, chain and time of lines. Knows nothing of what events mean. */
import { hash } from "node:crypto"
import { genesis, schemaId } from "../../../actors/TraceEvent.ts"
import type { Event } from "../TraceReader.ts"
import type { Findings } from "./Findings.ts"

export class Envelope {
  readonly #findings: Findings
  #runId: string | undefined
  /** Undefined after a line that could not be read: what comes next is taken as it is. */
  #nextSeq: number | undefined = 0
  #prev: string | undefined = genesis
  #time = 0
  /** Were the lines' bytes there? */
  chained = true

  constructor(findings: Findings) {
    this.#findings = findings
  }

  get runId(): string | undefined {
    return this.#runId
  }

  readonly see = ({ record, source }: Event): void => {
    const { add } = this.#findings
    if (record.schema !== schemaId) add("T02", `the schema is ${record.schema}`)
    this.#runId ??= record.run_id
    if (record.run_id !== this.#runId) add("T03", `run ${record.run_id} in the trace of run ${this.#runId}`)
    if (this.#nextSeq !== undefined && record.seq !== this.#nextSeq) {
      add("T04", `seq is ${record.seq}, expected ${this.#nextSeq}`)
    }
    this.#nextSeq = record.seq + 1
    if (!(record.t_ms >= this.#time)) add("T06", `t_ms is ${record.t_ms} after ${this.#time}`)
    this.#time = record.t_ms
    if (source === undefined) {
      this.chained = false
      return
    }
    if (this.#prev !== undefined && source.envelope["prev"] !== this.#prev) {
      add("T05", "prev is not the digest of the line before")
    }
    this.#prev = hash("sha256", source.bytes)
  }

  /** A line that could not be read: nobody knows what it said, so the next one continues whatever it claims to. */
  readonly skip = (): void => {
    this.#nextSeq = undefined
    this.#prev = undefined
  }
}
