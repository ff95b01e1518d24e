/** The labelled answers of test/fixtures/claims.jsonl: small records around each, and how the check does on them. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Claim, ClaimKind } from "../../src/effects/trace/claims/Claim.ts"
import { checkClaims } from "../../src/effects/trace/claims/ClaimCheck.ts"
import type { TraceRecord } from "../../src/effects/trace/TraceReader.ts"

type Made = readonly [tool: string, args: unknown, fate: string, result?: unknown]

export interface Labelled {
  readonly id: number
  /** `tuned`: rules were changed after looking at it. `held`: they were not. */
  readonly part: "tuned" | "held"
  readonly task: string
  /** `fate` is `ok`, `denied`, `skipped`, or `refused:KIND` or `failed:KIND`. */
  readonly calls: ReadonlyArray<Made>
  readonly answer: string
  /** What a person sees claimed: `s` the record bears it, `u` it does not. */
  readonly claims: ReadonlyArray<readonly [kind: ClaimKind, text: string, truth: "s" | "u"]>
}

const reading = /^(?:read_|list_|search_|lookup|calculate|web_)/
const riskOf = (tool: string) =>
  reading.test(tool) ? "read" : /^(?:write|edit)_/.test(tool) ? "local-write" : "external"

export const labelled: ReadonlyArray<Labelled> = readFileSync(
  join(import.meta.dirname, "../fixtures/claims.jsonl"),
  "utf8"
)
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Labelled)

type Event = readonly [type: string, step: string, data: Record<string, unknown>, phase?: string]

const callEvents = ([tool, args, fate, result]: Made, at: number): ReadonlyArray<Event> => {
  const call = `call-${at}-0`
  const [what, kind] = fate.split(":")
  const about = { call, tool }
  const asked: Event = ["legality_checked", `model-${at}`, { ...about, ordinal: 0 }]
  const valid: Event = ["tool_call_validated", `model-${at}`, { ...about, risk: riskOf(tool), arguments: args }]
  const told = (ok: boolean, answer: unknown): Event => [
    "tool_result_committed",
    `model-${at}`,
    { ...about, ok, answer: JSON.stringify(answer) }
  ]
  if (what === "skipped") return [asked, valid, ["call_skipped", `model-${at}`, { ...about, reason: "limit" }]]
  if (what === "denied" || what === "refused") {
    const phase = what === "denied" ? "approve" : "validate"
    const refused = { ...about, kind: kind ?? "refused", errors: [] }
    return [asked, ["tool_call_rejected", `model-${at}`, refused, phase], told(false, { ok: false, kind })]
  }
  const ok = what === "ok"
  const finished = { ...about, ok, failure_kind: kind ?? null, payload: ok ? result : { ok, kind } }
  return [asked, valid, ["tool_execution_finished", `tool-${at}`, finished], told(ok, finished.payload)]
}

/** The record of a case, as far as the check looks at it. */
export const recordsFor = ({
  answer,
  calls,
  task
}: Pick<Labelled, "answer" | "calls" | "task">): ReadonlyArray<TraceRecord> => {
  const tools = [...new Set(calls.map(([tool]) => tool))].map((name) => ({ name, risk: riskOf(name) }))
  const events: ReadonlyArray<Event> = [
    ["run_started", "run", { task, content: true, committed_len: 0 }],
    ["provenance", "run", { tools, system: "" }],
    ...calls.flatMap(callEvents),
    ["run_completed", "finalize", { final_text: answer }]
  ]
  return events.map(([event_type, step, data, phase], seq) => {
    return { schema: "writ.trace.v1", run_id: "run-1", seq, event_type, t_ms: seq, step, phase: phase ?? null, data }
  })
}

export const claimsOf = (given: Pick<Labelled, "answer" | "calls" | "task">): ReadonlyArray<Claim> =>
  checkClaims(recordsFor(given)).claims

export interface Score {
  /** Unsupported claims that are there, and how many were listed. */
  unsupported: number
  hits: number
  /** Listed as unsupported, and not so. */
  falseAlarms: number
}

export const kinds: ReadonlyArray<ClaimKind> = ["writing", "acting", "reading", "number", "name"]

export interface Judged {
  readonly scores: Record<ClaimKind, Score>
  /** Each mistake in a line. */
  readonly mistakes: ReadonlyArray<string>
}

/** Compares what is listed with what a person sees. Each label is met at most once. */
export const judge = (cases: ReadonlyArray<Labelled>): Judged => {
  const scores = Object.fromEntries(
    kinds.map((kind) => [kind, { unsupported: 0, hits: 0, falseAlarms: 0 }])
  ) as Judged["scores"]
  const mistakes: Array<string> = []
  for (const one of cases) {
    const open = one.claims.filter(([, , truth]) => truth === "u").map(([kind, text]) => ({ kind, text }))
    for (const { kind } of open) scores[kind].unsupported += 1
    for (const { kind, text, verdict } of claimsOf(one)) {
      if (verdict !== "unsupported") continue
      const at = open.findIndex((label) => label.kind === kind && text.includes(label.text))
      if (at >= 0) {
        open.splice(at, 1)
        scores[kind].hits += 1
      } else {
        scores[kind].falseAlarms += 1
        mistakes.push(`${one.id} false alarm: ${kind} ${text}`)
      }
    }
    for (const { kind, text } of open) mistakes.push(`${one.id} missed: ${kind} ${text}`)
  }
  return { scores, mistakes }
}
