/**
 * T45 and T46, and the words that T30 and T42 are about: tools' names, what an execution came to, the answer made of it, and
 * the text a run ends with. Compares what is there: without content lengths, and digests of what must be the same text.
 */
import type { Content, EventData, Hidden } from "../../../actors/TraceEvent.ts"
import type { Json } from "../../../tools/JsonText.ts"
import { answerText } from "../../../tools/ToolCall.ts"
import { Concealed } from "../Concealed.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"
import { isMadeOf, isShortened } from "./Shortened.ts"

/** The whole answer to a call, as far as the trace shows it. */
interface Came {
  readonly bytes: number
  readonly text?: string
  readonly hmac?: string
}

/** Of the calls of the turn that waits for answers. */
interface Words {
  tool: Content
  came: Came | undefined
}

/** What success adds to its result: `{"ok":true,"result":` and `}`. */
const frameBytes = Buffer.byteLength(answerText({ ok: true, result: "" })) - 2

const isHidden = (value: unknown): value is Hidden =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as Hidden).bytes === "number" &&
  typeof (value as Hidden).hmac === "string"

export class Wording {
  readonly #findings: Findings
  readonly #facts: RunFacts
  readonly #calls = new Map<string, Words>()
  /** The last turn's text. */
  #said: Content | undefined

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    switch (record.event_type) {
      case "model_call_started":
        return this.#calls.clear()
      case "model_call_finished":
        this.#said = record.data.text
        return
      case "legality_checked":
        if (record.data.cause !== "malformed") this.#named(record.data)
        return
      case "precondition_checked":
      case "tool_call_validated":
      case "approval_requested":
      case "approval_decided":
      case "effect_intent":
      case "effect_accepted":
      case "effect_probed":
      case "retry_scheduled":
      case "effect_settled":
      case "effect_escalated":
      case "tool_execution_started":
      case "call_skipped":
        this.#named(record.data)
        return
      case "tool_call_rejected":
        return this.#rejected(record.data)
      case "tool_execution_finished":
        return this.#finished(record.data)
      case "tool_result_committed":
        return this.#answered(record.data, record.data.truncated, record.data.ok)
      case "tool_result_uncommitted":
        return this.#answered(record.data, undefined, undefined)
    }
  }

  /** `record` is the terminal event. A run that only had to close its record has its answer in another trace. */
  readonly end = (record: KnownRecord): void => {
    if (record.event_type !== "run_completed" || this.#said === undefined) return
    const { final_text: final } = record.data
    const fits =
      typeof final === "string"
        ? typeof this.#said !== "string" || isMadeOf(final, this.#said)
        : typeof this.#said === "string" || isPartOf(final, this.#said)
    this.#findings.unless(fits, "T42", () => "the final text is not what the last turn says")
  }

  /** Is the tool the one that every event of this call named? */
  #named({ call, tool }: { readonly call: string; readonly tool: Content }): Words {
    const known = this.#calls.get(call)
    if (known === undefined) {
      const fresh = { tool, came: undefined }
      this.#calls.set(call, fresh)
      return fresh
    }
    this.#findings.unless(this.#same(known.tool, tool), "T45", () => `${call} is a call of another tool here`)
    return known
  }

  #same(one: Content, other: Content): boolean {
    if (typeof one === "string" && typeof other === "string") return one === other
    if (typeof one !== "string" && typeof other !== "string")
      return one.hmac === other.hmac && one.bytes === other.bytes
    // A name in the clear beside a hidden one: a registered name is never hidden, and T09 judges any other.
    return !this.#facts.tools.has(String(typeof one === "string" ? one : other))
  }

  #rejected(data: EventData<"tool_call_rejected">) {
    const words = this.#named(data)
    const { errors: problems, hint, kind } = data
    const shown = problems.every(({ path, reason }) => typeof path === "string" && typeof reason === "string")
    if (!shown || this.#facts.started?.content !== true) return
    const errors = problems.map(({ path, reason }) => ({ path, reason }))
    const text = JSON.stringify({ ok: false, kind, errors, ...(hint === undefined ? {} : { retry_hint: hint }) })
    words.came = { text, bytes: Buffer.byteLength(text) }
  }

  #finished(data: EventData<"tool_execution_finished">) {
    const words = this.#named(data)
    const came = this.#cameOf(data)
    words.came = came
    if (came === undefined) return
    const { call, failure_kind, ok, payload_bytes } = data
    this.#findings.unless(
      payload_bytes === came.bytes,
      "T46",
      () => `the answer to ${call} is said to have ${payload_bytes} bytes, its payload makes ${came.bytes}`
    )
    if (ok || came.text === undefined) return
    const told = `{"ok":false,"kind":${JSON.stringify(failure_kind)},`
    this.#findings.unless(came.text.startsWith(told), "T46", () => `${call} failed, and its payload says otherwise`)
  }

  #cameOf({ ok, payload }: EventData<"tool_execution_finished">): Came | undefined {
    if (this.#facts.started?.content === true && !(payload instanceof Concealed)) {
      if (!ok && typeof payload !== "string") return undefined
      const text = ok ? answerText({ ok: true, result: payload as Json }) : String(payload)
      return { text, bytes: Buffer.byteLength(text) }
    }
    // The digest of a result is over the result, that of a failure over the answer itself.
    if (!isHidden(payload)) return undefined
    return ok ? { bytes: payload.bytes + frameBytes } : { bytes: payload.bytes, hmac: payload.hmac }
  }

  /** @param truncated is it said to be shortened? undefined: that is not on the record */
  #answered(
    data: { readonly call: string; readonly tool: Content; readonly answer: Content },
    truncated: boolean | undefined,
    ok: boolean | undefined
  ) {
    const { came } = this.#named(data)
    const { answer, call } = data
    const fits =
      typeof answer === "string" ? isAnswer(answer, came, truncated, ok) : isHiddenAnswer(answer, came, truncated)
    this.#findings.unless(fits, "T30", () => `the answer to ${call} is not what it came to`)
  }
}

const isAnswer = (
  answer: string,
  came: Came | undefined,
  truncated: boolean | undefined,
  ok: boolean | undefined
): boolean => {
  // Nothing but `ok` is known of a call that was not run again; where more is, Answers judges `ok`.
  if (came?.text === undefined) return ok === undefined || answer.startsWith(`{"ok":${ok},`)
  if (answer === came.text) return truncated !== true
  return truncated !== false && isShortened(answer, came.text)
}

const isHiddenAnswer = ({ bytes, hmac }: Hidden, came: Came | undefined, truncated: boolean | undefined): boolean => {
  if (came === undefined || truncated !== false) return true
  return bytes === came.bytes && (came.hmac === undefined || hmac === came.hmac)
}

/** A text is no longer than what it is part of; one as long is the same. */
const isPartOf = (part: Hidden, whole: Hidden): boolean =>
  part.bytes < whole.bytes || (part.bytes === whole.bytes && part.hmac === whole.hmac)
