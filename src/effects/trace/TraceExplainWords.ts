/** What the events of one call say, in the words of an explanation. Reads single events; `TraceExplain` puts them together. */
import type { TraceRecord } from "./TraceReader.ts"
import { show } from "./TraceTimeline.ts"

export type Stage =
  | "proposal"
  | "legality"
  | "choice"
  | "arguments"
  | "rejection"
  | "approval"
  | "precondition"
  | "ledger"
  | "execution"
  | "try"
  | "postcondition"
  | "artifact"
  | "escalation"
  | "late"
  | "told"

export type Told = readonly [stage: Stage, text: string]

const problems = (errors: unknown): string =>
  Array.isArray(errors)
    ? errors
        .map(({ path, reason }: { readonly path?: unknown; readonly reason?: unknown }) =>
          [show(path), show(reason)].filter((part) => part !== "").join(": ")
        )
        .join("; ")
    : ""

const checkWords: Readonly<Record<string, string>> = { pass: "passed", fail: "FAILED", not_evaluated: "not looked at" }

const legality = ({ data }: TraceRecord): Told => {
  const checks = (["schema", "scopes", "pre"] as const).map(
    (name) => `${name === "pre" ? "precondition" : name} ${checkWords[String(data[name])] ?? show(data[name])}`
  )
  const { blocked_by: blocked, cause, follows_refusal_of: refusal, resembles } = data
  const notes = [
    Array.isArray(blocked) && blocked.length > 0 ? `blocked by ${blocked.map(show).join(", ")}` : "",
    cause === undefined ? "" : `cause: ${show(cause)}`,
    refusal === undefined ? "" : `it goes for what was refused at event ${show(refusal)}`,
    resembles === undefined ? "" : `the same was proposed before, at event ${show(resembles)}`
  ]
  return ["legality", [checks.join(", "), ...notes].filter((part) => part !== "").join("; ")]
}

const choice = ({ data }: TraceRecord): Told => {
  const candidates = Array.isArray(data["candidates"]) ? (data["candidates"] as ReadonlyArray<TraceRecord["data"]>) : []
  const { cost, risk } = Object(data["weights"]) as TraceRecord["data"]
  const scores = candidates.map((one) => {
    const amount = (name: string) => (one[name] === null ? "infinite" : show(one[name]))
    const sum = `${show(one["value"])} - ${show(cost)} x ${amount("cost")} - ${show(risk)} x ${amount("risk")}`
    return `${show(one["id"])}: ${sum} = ${one["score"] === null ? "forbidden" : show(one["score"])}`
  })
  return [
    "choice",
    `${show(data["chosen"]) || "nothing"} is worth most by ${show(data["governor"])} (${scores.join("; ")})`
  ]
}

/** By what success is judged, or was. */
const evidenceOf = (evidence: unknown): string => {
  const { describes, seen, source } = Object(evidence) as TraceRecord["data"]
  const more = seen ?? describes
  return source === undefined ? "" : `${show(source)}${more === undefined ? "" : `: ${show(more)}`}`
}

const requested = ({ data }: TraceRecord): Told => {
  const { cost, digest, evidence, hazard, reversible } = data
  const terms = [
    cost === undefined ? "" : `cost ${show(cost) || "infinite"}`,
    hazard === undefined ? "" : `hazard ${show(hazard) || "infinite"}`,
    reversible === undefined ? "" : reversible === true ? "it can be undone" : "it cannot be undone",
    evidence === undefined ? "" : `success to be judged by ${evidenceOf(evidence)}`
  ].filter((part) => part !== "")
  return [
    "approval",
    [`somebody was asked about exactly this call (${show(digest).slice(0, 12)})`, ...terms].join("; ")
  ]
}

const escalated = ({ data }: TraceRecord): Told => {
  const attempts = Array.isArray(data["attempts"]) ? (data["attempts"] as ReadonlyArray<TraceRecord["data"]>) : []
  const each = attempts.map(
    ({ at_ms, effect, kind }, at) =>
      `try ${at + 1} at ${show(at_ms)} ms: ${show(kind) || "no outcome"}, effect ${show(effect)}`
  )
  return [
    "escalation",
    `left to a person, because nobody here can find out what it came to (${each.join("; ") || "no tries on record"})`
  ]
}

const finished = ({ data }: TraceRecord): Told => {
  const time = `after ${show(data["duration_ms"])} ms`
  if (data["ok"] === true)
    return ["execution", `succeeded ${time}: ${show(data["payload_excerpt"] ?? data["payload"])}`]
  const left: Readonly<Record<string, string>> = {
    none: "; it changed nothing",
    present: "; what it did before is still there",
    unknown: "; nobody knows what it changed"
  }
  return [
    "execution",
    `failed ${time} (${[data["failure_kind"], data["class"], data["stage"]]
      .map(show)
      .filter((part) => part !== "")
      .join(", ")}): ${show(data["payload"])}${left[show(data["effect"])] ?? ""}`
  ]
}

const settled = ({ data }: TraceRecord): Told => [
  "ledger",
  data["replayed"] === true
    ? `the ledger knew this call from before (${show(data["outcome"])}): nothing ran`
    : `settled as ${show(data["status"] ?? data["outcome"])}${
        data["evidence"] === undefined ? "" : `, by ${evidenceOf(data["evidence"])}`
      }`
]

/** What each event says of its call; nothing where it says nothing. */
export const words: Readonly<Record<string, (record: TraceRecord) => Told | undefined>> = {
  legality_checked: legality,
  tool_call_validated: ({ data }) => [
    "arguments",
    `valid: ${show(data["arguments"])}${data["effective"] === undefined ? "" : `, with defaults ${show(data["effective"])}`}; risk ${show(data["risk"]) || "not recorded"}`
  ],
  tool_call_rejected: ({ data }) => [
    "rejection",
    `${show(data["kind"])}: ${problems(data["errors"]) || "no reason on record"}${
      data["hint"] === undefined ? "" : `; hint: ${show(data["hint"])}`
    }`
  ],
  precondition_checked: ({ data }) => [
    "precondition",
    `looked at again after ${show(data["after"])}: ${checkWords[String(data["pre"])] ?? show(data["pre"])}`
  ],
  proposal_scored: choice,
  approval_requested: requested,
  approval_decided: ({ data }) => [
    "approval",
    `${show(data["decision"])} by ${show(data["by"])}${data["expired"] === true ? ", which no longer held when it was to be used" : ""}`
  ],
  effect_intent: ({ data }) => [
    "ledger",
    `the intent was made durable (mode ${show(data["mode"])}, key ${show(data["key"]).slice(0, 12)}${
      data["attempt"] === undefined ? "" : `, try ${show(data["attempt"])}`
    })${data["compensates"] === undefined ? "" : `; it is to undo ${show(data["compensates"])}`}`
  ],
  effect_accepted: ({ data }) => [
    "postcondition",
    `the request was taken, and its promise is looked for up to ${show(data["settle_within_ms"])} ms`
  ],
  effect_probed: ({ data }) => [
    "try",
    `after a lost answer the world was looked at: the effect is ${show(data["found"])}`
  ],
  retry_scheduled: ({ data }) => [
    "try",
    `try ${show(data["attempt"])} of ${show(data["of"])} had no answer (${show(data["class"])}); another in ${show(data["delay_ms"])} ms`
  ],
  effect_escalated: escalated,
  effect_settled: settled,
  tool_execution_started: ({ data, step }) => [
    "execution",
    `started as execution ${show(data["call_seq"])} (${step})${deadline(data["deadline_ms"])}`
  ],
  tool_execution_finished: finished,
  artifact_written: ({ data }) => [
    "artifact",
    `${show(data["name"] ?? data["artifact_id"])}, ${show(data["size_bytes"])} bytes, SHA-256 ${show(data["sha256"])}`
  ],
  late_outcome: ({ data }) => [
    "late",
    `after it was given up it ${data["ok"] === true ? "succeeded" : `failed (${show(data["failure_kind"])})`}; the model was never told`
  ],
  tool_result_committed: ({ data }) => [
    "told",
    `${data["truncated"] === true ? "head and tail of the answer" : "the answer"}: ${show(data["answer"]) || (data["ok"] === true ? "success" : "failure")}`
  ],
  tool_result_uncommitted: ({ data }) => [
    "told",
    `nothing: the run stopped before (${show(data["reason"])}); it would have read ${show(data["answer"]) || "an answer"}`
  ],
  call_skipped: ({ data }) => [
    "told",
    `nothing: the run stopped before it was this call's turn (${show(data["reason"])})`
  ]
}

const noDeadline = 2 ** 31 - 1

const deadline = (millis: unknown): string => {
  if (typeof millis !== "number") return ""
  return millis === noDeadline ? ", without a deadline" : `, with ${millis} ms to run`
}
