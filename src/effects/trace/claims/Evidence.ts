/**
 * What a record offers a claim to rest on: calls with what became of them, names, numbers. Collects while events go by and
 * keeps little: names and numbers, never texts. Judges nothing.
 */
import type { TraceRecord } from "../TraceReader.ts"
import { isLeftOut } from "../TraceValues.ts"
import { keysOf, type Name, namesIn } from "./Names.ts"
import { NumberSources } from "./NumberSources.ts"

/** A call, as far as a claim can rest on it. */
export interface Deed {
  readonly id: string
  readonly tool: string
  /** As its contract says; what nobody stated may do anything. */
  risk: "read" | "local-write" | "external"
  succeeded: boolean
  /** In words, for a call that did not succeed. */
  fate: string
}

/** A place where a name stands: a call, or nothing but the task. */
export interface Mentioned {
  readonly deed: Deed | undefined
  readonly place: "task" | "arguments" | "result" | "artifact"
}

type Data = TraceRecord["data"]

interface Open {
  readonly deed: Deed
  /** Its payload was seen. */
  heard: boolean
}

const mostNames = 100_000
const mostPlaces = 40
const mostDeeds = 2_000
const mostVerbs = 5_000
/** Characters of a text in which they are looked for. */
const mostReported = 100_000

/** How forms like "paid", "sent", "written", "bought", "deleted" end. */
const participle = /(?:ed|aid|ent|ten|ght)\b/g

const word = (value: unknown): string => (typeof value === "string" ? value : "")

/** Ember's words as well. */
const risks: Readonly<Record<string, Deed["risk"]>> = {
  read: "read",
  read_only: "read",
  "local-write": "local-write",
  local_write: "local-write",
  external_side_effect: "external",
  external: "external"
}

/** Texts inside a value, however deep. */
function* textsIn(given: unknown): Iterable<string> {
  const left: Array<unknown> = [given]
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    if (typeof item === "string") yield item
    else if (typeof item === "object" && item !== null)
      for (const one of Object.values(item)) if (one !== undefined) left.push(one)
  }
}

export class Evidence {
  readonly numbers = new NumberSources()
  /** Calls that succeeded, the first ones of each tool; and the last ones that did not. */
  readonly succeeded: Array<Deed> = []
  readonly others: Array<Deed> = []
  /** Verbs that a call's answer says of something: "paid", "deleted". */
  readonly reported = new Set<string>()
  readonly #names = new Map<string, Mentioned | Array<Mentioned>>()
  /** Files that the task names. */
  readonly #files = new Set<string>()
  readonly #risks = new Map<string, Deed["risk"]>()
  readonly #open = new Map<string, Open>()
  readonly #perTool = new Map<string, number>()
  #artifacts = 0
  #done = 0
  /** Names were left out. */
  cut = false

  /** Where a name stands in the record. */
  readonly places = (name: Name): ReadonlyArray<Mentioned> => {
    const found = this.#names.get(name.key)
    return found === undefined ? [] : Array.isArray(found) ? found : [found]
  }

  readonly see = (record: TraceRecord) => {
    const { data, event_type: type } = record
    switch (type) {
      case "run_started":
        return this.#told(data["task"])
      case "provenance":
        return this.#tools(data)
      case "message_committed":
        return word(data["role"]).startsWith("assistant") ? undefined : this.#told(data["content"])
      case "feedback_committed":
        return this.#told(data["content"])
      case "call_skipped":
      case "legality_checked":
      case "tool_call_rejected":
      case "tool_call_validated":
      case "tool_execution_started":
      case "tool_execution_finished":
      case "effect_settled":
      case "effect_escalated":
      case "artifact_written":
      case "tool_result_committed":
      case "tool_result_uncommitted":
        return this.#call(type, record)
    }
  }

  #told(content: unknown): void {
    if (typeof content !== "string") return
    this.numbers.task(content)
    this.#put(content, { deed: undefined, place: "task" })
  }

  #tools({ tools, system }: Data): void {
    this.#told(system)
    if (!Array.isArray(tools)) return
    for (const tool of tools as ReadonlyArray<Data | null>) {
      const risk = risks[word(tool?.["risk"])]
      if (risk !== undefined) this.#risks.set(word(tool?.["name"]), risk)
    }
  }

  #put(text: string, where: Mentioned): void {
    for (const name of namesIn(text)) {
      if (where.place === "task" && name.kind === "file") this.#files.add(name.key)
      for (const key of keysOf(name)) {
        const known = this.#names.get(key)
        if (known === undefined && this.#names.size >= mostNames) this.cut = true
        else if (known === undefined) this.#names.set(key, where)
        else if (!Array.isArray(known)) this.#names.set(key, [known, where])
        else if (known.length < mostPlaces && known.at(-1) !== where) known.push(where)
      }
    }
  }

  #value(from: "result" | "arguments", value: unknown, deed: Deed): void {
    if (value === undefined || isLeftOut(value)) return
    this.numbers.value(from, value)
    const where = { deed, place: from }
    for (const text of textsIn(value)) this.#put(text, where)
  }

  #deed({ data }: TraceRecord): Open {
    const id = word(data["call"])
    const known = this.#open.get(id)
    if (known !== undefined) return known
    const tool = word(data["tool"])
    const risk = this.#risks.get(tool) ?? "external"
    const open = { deed: { id, tool, risk, succeeded: false, fate: "has no end on record" }, heard: false }
    this.#open.set(id, open)
    return open
  }

  #call(type: string, record: TraceRecord) {
    const { data } = record
    if (data["cause"] === "malformed" || word(data["call"]) === "") return
    const open = this.#deed(record)
    const { deed } = open
    switch (type) {
      case "tool_call_validated":
        deed.risk = risks[word(data["risk"])] ?? deed.risk
        this.#value("arguments", data["arguments"], deed)
        return this.#value("arguments", data["effective"], deed)
      case "tool_call_rejected":
        deed.fate =
          record.phase === "approve" ? "was denied" : `was refused (${word(data["kind"]) || "no reason on record"})`
        return
      case "tool_execution_finished":
        open.heard = true
        return this.#finished(deed, data)
      case "effect_settled":
        if (data["replayed"] === true) deed.succeeded = data["outcome"] === "succeeded"
        return
      case "effect_escalated":
        deed.succeeded = false
        deed.fate = "came to something that nobody knows"
        return
      case "artifact_written":
        return this.#artifact(deed, data)
      case "call_skipped":
        deed.fate = "was skipped"
        return this.#close(deed)
      case "tool_result_committed":
      case "tool_result_uncommitted":
        // What was refused or known from before was not executed: its answer is all there is.
        if (!open.heard) this.#value("result", data["answer"], deed)
        return this.#close(deed)
    }
  }

  #artifact(deed: Deed, data: Data): void {
    this.#artifacts += 1
    this.#value("result", data["size_bytes"], deed)
    for (const name of [data["name"], data["artifact_id"]]) this.#put(word(name), { deed, place: "artifact" })
  }

  #finished(deed: Deed, data: Data): void {
    this.#value("result", data["payload"], deed)
    if (data["ok"] === true && deed.risk === "read") this.#report(data["payload"])
    deed.succeeded = data["ok"] === true
    if (!deed.succeeded) deed.fate = `failed (${word(data["failure_kind"]) || "no reason on record"})`
  }

  #report(payload: unknown): void {
    for (const text of textsIn(payload)) {
      const known = text.slice(0, mostReported)
      for (const { 0: ending, index } of known.matchAll(participle)) {
        const before = /[a-z]{0,12}$/i.exec(known.slice(Math.max(0, index - 12), index))![0]
        if (this.reported.size < mostVerbs) this.reported.add(`${before}${ending}`.toLowerCase())
      }
    }
  }

  #close(deed: Deed): void {
    this.#open.delete(deed.id)
    if (deed.tool === "") return
    if (!deed.succeeded) {
      this.others.push(deed)
      if (this.others.length > mostDeeds) this.others.splice(0, mostDeeds / 2)
      return
    }
    const count = (this.#perTool.get(deed.tool) ?? 0) + 1
    this.#perTool.set(deed.tool, count)
    this.#done += 1
    if (count <= 20) this.succeeded.push(deed)
  }

  /** No more events: calls without an answer count as they are. */
  readonly end = (): void => {
    for (const { deed } of [...this.#open.values()]) this.#close(deed)
    const counts = [this.#files.size, this.#artifacts, this.#done, ...this.#perTool.values()]
    for (const one of counts) this.numbers.count(one)
  }
}
