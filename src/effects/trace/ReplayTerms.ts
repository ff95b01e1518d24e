/**
 * Tools whose contracts answer what is on the record: whether a precondition held, what became of a promise, what a look for
 * an effect found. Prices, keys and what a call touches follow from its arguments and are computed. Looks at nothing.
 */
import * as Effect from "effect/Effect"
import type { Json } from "../../tools/JsonText.ts"
import type { RegisteredTool, Registry } from "../../tools/Registry.ts"
import type { BoundTerms, Found, Unmet, Verdict } from "../../tools/Terms.ts"
import { type Answer, answerText } from "../../tools/ToolCall.ts"
import { ToolError } from "../../tools/ToolError.ts"
import type { Tape } from "./ReplayTape.ts"
import type { TraceRecord } from "./TraceReader.ts"

type Data = TraceRecord["data"]

interface Problem {
  readonly path: string
  readonly reason: string
}

/** The errors of a refusal, or of a failure as the model was told it. */
const problemsOf = (data: Data): ReadonlyArray<Problem> => {
  if (Array.isArray(data["errors"])) return data["errors"] as ReadonlyArray<Problem>
  const told = JSON.parse(String(data["payload"])) as Answer
  return told.ok ? [] : told.errors
}

/** A term that failed, such that the loop words it as it did. */
const fault = (problems: ReadonlyArray<Problem>): Effect.Effect<never> =>
  Effect.die((problems[0]?.reason ?? "").replace(/^the contract's \S+ failed: /, ""))

/** What refused a call, or what its execution came to: whichever comes first from here on. */
const verdictOn = (tape: Tape, call: string): Data | undefined =>
  tape.coming(
    ({ data, event_type: type }) =>
      data["call"] === call && (type === "tool_call_rejected" || type === "tool_execution_finished")
  )?.data

const precondition = (tape: Tape): Effect.Effect<ReadonlyArray<Unmet>, ToolError> =>
  Effect.suspend(() => {
    const next = tape.next()?.record
    if (next?.event_type === "candidate_sampled" || next?.event_type === "proposal_scored") return sampled(tape)
    if (next?.data["pre"] !== "fail") return Effect.succeed([])
    const said = verdictOn(tape, String(next.data["call"])) ?? {}
    const problems = problemsOf(said)
    if ((said["kind"] ?? said["failure_kind"]) === "contract_fault") return fault(problems)
    const [first] = problems
    // A look that could not be taken comes without a hint.
    if (said["hint"] === undefined && said["errors"] !== undefined && first !== undefined) {
      return Effect.fail(new ToolError({ kind: "execution_failed", message: first.reason, path: first.path }))
    }
    return Effect.succeed(problems.map(({ path, reason }) => (path === "" ? { reason } : { path, reason })))
  })

/** A sample that was illegal is taken to have failed here, where its arguments were fine. */
const sampled = (tape: Tape): Effect.Effect<ReadonlyArray<Unmet>> => {
  const scored = tape.coming(({ event_type: type }) => type === "proposal_scored")?.data["candidates"]
  const { data, event_type: type } = tape.previous ?? { data: {} as Data, event_type: "" }
  const listed = Array.isArray(scored) ? (scored as ReadonlyArray<Data>) : []
  const own = listed.find(({ id }) => type === "candidate_sampled" && id === data["id"])
  return Effect.succeed(own?.["legal"] === false ? [{ reason: "the sample was not legal" }] : [])
}

/** What the runtime saw when it judged a call. */
const seenBy = (tape: Tape, call: string): Json | undefined => {
  const settled = tape.coming(({ data, event_type: type }) => type === "effect_settled" && data["call"] === call)
  return (settled?.data["evidence"] as { readonly seen?: Json } | undefined)?.seen
}

const isPersons = (tape: Tape, call: string): boolean => {
  const settled = tape.coming(({ data, event_type: type }) => type === "effect_settled" && data["call"] === call)
  return (settled?.data["evidence"] as { readonly source?: string } | undefined)?.source === "person"
}

const broken = (problems: ReadonlyArray<Problem>, evidence: Json | undefined): Verdict => {
  const suffix = evidence === undefined ? "" : `; seen: ${JSON.stringify(evidence)}`
  const unmet = problems.map(({ path, reason }) => ({
    ...(path === "" ? {} : { path }),
    reason: reason.endsWith(suffix) ? reason.slice(0, reason.length - suffix.length) : reason
  }))
  return { _tag: "Broken", unmet, ...(evidence === undefined ? {} : { evidence }) }
}

const postcondition = (tape: Tape): Effect.Effect<Verdict> =>
  Effect.suspend((): Effect.Effect<Verdict> => {
    if (tape.next()?.record.event_type === "effect_accepted") return Effect.succeed({ _tag: "Pending" })
    const ended = tape.coming(({ event_type: type }) => type === "tool_execution_finished" || type === "effect_settled")
    const data = ended?.data ?? {}
    const call = String(data["call"])
    const evidence = seenBy(tape, call)
    const holds: Verdict = { _tag: "Holds", ...(evidence === undefined ? {} : { evidence }) }
    if (data["ok"] === true || data["outcome"] === "succeeded" || isPersons(tape, call)) return Effect.succeed(holds)
    if (ended?.event_type === "effect_settled") return Effect.succeed(broken(toldOf(tape, call), evidence))
    if (data["failure_kind"] === "contract_fault") return fault(problemsOf(data))
    return Effect.succeed(
      data["failure_kind"] === "outcome_unknown" ? { _tag: "Pending" } : broken(problemsOf(data), evidence)
    )
  })

const answerTo = (tape: Tape, call: string): Answer | undefined => {
  const told = tape.coming(
    ({ data, event_type: type }) =>
      data["call"] === call && (type === "tool_result_committed" || type === "tool_result_uncommitted")
  )?.data["answer"]
  return told === undefined ? undefined : (JSON.parse(String(told)) as Answer)
}

const toldOf = (tape: Tape, call: string): ReadonlyArray<Problem> => {
  const told = answerTo(tape, call)
  return told === undefined || told.ok ? [] : told.errors
}

/** What was found is what the call came to: in the execution's result, or in what the model was told. */
const probe = (tape: Tape): Effect.Effect<Found<Json>> =>
  Effect.sync(() => {
    const { call, found } = tape.next()?.record.data ?? {}
    if (found !== "present") return found === "absent" ? { _tag: "Absent" } : { _tag: "Unclear" }
    const finished = tape.coming(
      ({ data, event_type: type }) => type === "tool_execution_finished" && data["call"] === call
    )
    const told = answerTo(tape, String(call))
    const result =
      finished?.data["ok"] === true ? (finished.data["payload"] as Json) : told?.ok === true ? told.result : null
    return { _tag: "Present", result }
  })

const termsOf = (tape: Tape, { pre, preview: _, post, probe: looks, ...terms }: BoundTerms): BoundTerms => ({
  ...terms,
  pre: pre === undefined ? undefined : () => precondition(tape),
  post: post === undefined ? undefined : () => postcondition(tape),
  probe: looks === undefined ? undefined : () => probe(tape),
  // What whoever decided was shown is not on the record, and nobody is shown anything again.
  preview: undefined
})

/** The same tools, with contracts that answer from the tape. */
export const recorded = (tape: Tape, registry: Registry): Registry => {
  const tools = registry.tools.map((tool): RegisteredTool => ({ ...tool, terms: termsOf(tape, tool.terms) }))
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return { ...registry, tools, get: (name) => byName.get(name) }
}

/** The failure that a recorded answer tells, with its hint. */
export const hintOf = (payload: unknown): { readonly hint?: string } => {
  try {
    const told = JSON.parse(String(payload)) as Answer
    return told.ok || told.retry_hint === undefined || answerText(told) !== payload ? {} : { hint: told.retry_hint }
  } catch {
    return {}
  }
}
