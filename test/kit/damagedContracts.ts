/** Damage to what the trace says of legality, choice, approval, tries and settlement. */
import { data, drop, event, insertAfter, type Lines, repeat } from "./corrupt.ts"
import { type Damage, edit, otherDigest } from "./damage.ts"

const gates = (lines: Lines) => data(lines, "provenance")["gates"]

const toolOf = (lines: Lines, name: string) =>
  data(lines, "provenance")["tools"].find((tool: { readonly name: string }) => tool.name === name)

const legality: ReadonlyArray<Damage> = [
  edit("T47", "malformed", "a malformed attempt that is not on the record", (lines) => drop(lines, "legality_checked")),
  edit("T47", "malformed", "a malformed attempt twice", (lines) => repeat(lines, "legality_checked")),
  edit("T47", "malformed, no content", "a malformed attempt of a later stage", (lines) => {
    data(lines, "legality_checked")["stage"] = "schema"
  }),
  edit("T47", "one tool", "a malformed attempt in a turn of calls", (lines) => {
    const checked = event(lines, "legality_checked")
    insertAfter(lines, "legality_checked", 0, {
      event_type: "legality_checked",
      data: {
        ...checked.data,
        tool: "",
        schema: "fail",
        scopes: "not_evaluated",
        pre: "not_evaluated",
        cause: "malformed",
        blocked_by: ["schema"],
        class: "schema",
        stage: "parse"
      }
    })
  }),
  edit("T48", "invalid arguments", "blocked by another check than failed", (lines) => {
    data(lines, "legality_checked")["blocked_by"] = ["scopes"]
  }),
  edit("T48", "one tool", "a legal call that is blocked", (lines) => {
    data(lines, "legality_checked")["blocked_by"] = ["pre"]
  }),
  edit("T49", "invalid arguments", "rejected by a later gate than failed", (lines) => {
    data(lines, "legality_checked")["schema"] = "pass"
    Object.assign(data(lines, "legality_checked"), { scopes: "fail", blocked_by: ["scopes"] })
  }),
  edit("T49", "not ready", "rejected for its precondition, which held", (lines) => {
    Object.assign(data(lines, "legality_checked"), { pre: "pass", blocked_by: [] })
  }),
  edit("T50", "unknown tool", "a refusal of another class", (lines) => {
    data(lines, "tool_call_rejected")["class"] = "authorization"
  }),
  edit("T50", "denied", "a refusal by another gate", (lines) => {
    data(lines, "tool_call_rejected")["stage"] = "governor"
  }),
  edit("T50", "failing tool", "a failure of another class", (lines) => {
    data(lines, "tool_execution_finished")["class"] = "timeout"
  }),
  edit("T50", "crashing tool", "a failure at another stage", (lines) => {
    data(lines, "tool_execution_finished")["stage"] = "postcondition"
  }),
  edit("T50", "one tool", "a success with a class of failure", (lines) => {
    data(lines, "tool_execution_finished")["class"] = "schema"
  }),
  edit("T60", "denied twice", "a refusal to follow that is none", (lines) => {
    data(lines, "legality_checked", 1)["follows_refusal_of"] = 2
  }),
  edit("T60", "proposed twice", "a resemblance to another tool's proposal", (lines) => {
    data(lines, "legality_checked", 2)["resembles"] = event(lines, "legality_checked", 1).seq
  }),
  edit("T60", "paid and undone", "a compensation of a call that it does not undo", (lines) => {
    data(lines, "effect_intent", 1)["compensates"] = "call-1-0"
  })
]

const choice: ReadonlyArray<Damage> = [
  edit("T51", "worth it", "a score that does not add up", (lines) => {
    data(lines, "proposal_scored")["candidates"][0]["score"] += 1
  }),
  edit("T51", "worth it", "weights that are not the run's", (lines) => {
    gates(lines)["weights"]["cost"] = 2
  }),
  edit("T51", "not worth it, no content", "a choice that is not the best", (lines) => {
    data(lines, "proposal_scored")["chosen"] = "observe"
  }),
  edit("T52", "worth it", "a call scored after it was let go on", (lines) => {
    const [scored] = lines.splice(lines.indexOf(event(lines, "proposal_scored")), 1)
    lines.splice(lines.indexOf(event(lines, "tool_call_validated")) + 1, 0, scored!)
  }),
  edit("T52", "not worth it", "not chosen, and never scored", (lines) => drop(lines, "proposal_scored")),
  edit("T52", "worth it", "a call that lost and goes on", (lines) => {
    const scored = data(lines, "proposal_scored")
    for (const one of scored["candidates"]) Object.assign(one, { cost: 20, score: 0 - 20 })
    Object.assign(scored["candidates"][0], { cost: 20, score: 10 - 20 - 1 })
    Object.assign(scored["candidates"][1], { cost: 0, score: 0 })
    scored["chosen"] = "do_nothing"
  }),
  edit("T53", "approved", "an effect that nobody was asked about", (lines) => {
    drop(lines, "approval_requested")
    drop(lines, "approval_decided")
  }),
  edit("T54", "approved", "asked without the evidence", (lines) => {
    delete data(lines, "approval_requested")["evidence"]
  }),
  edit("T54", "approved", "asked as if it could not be undone", (lines) => {
    data(lines, "approval_requested")["reversible"] = false
  }),
  edit("T61", "approved", "an effect in a dry run", (lines) => {
    gates(lines)["dry_run"] = true
  }),
  edit("T61", "dry run", "a call left out for a dry run that is none", (lines) => {
    gates(lines)["dry_run"] = false
  })
]

const samples: ReadonlyArray<Damage> = [
  edit("T63", "sampled", "one sample less than the run takes", (lines) => drop(lines, "candidate_sampled")),
  edit("T63", "sampled", "a turn that starts from a sample that lost", (lines) => {
    const [one, other] = [data(lines, "candidate_sampled"), data(lines, "candidate_sampled", 1)]
    ;[one["seed"], other["seed"]] = [other["seed"], one["seed"]]
  }),
  edit("T63", "sampled", "a sample that was not chosen among", (lines) => {
    data(lines, "candidate_sampled", 1)["id"] = "sample-7"
  }),
  edit("T63", "one tool", "samples in a run that takes none", (lines) => {
    const { seed, turn } = data(lines, "model_call_started")
    const sample = { turn, id: "sample-0", seed, stop_reason: "eog", output_tokens: 1, action: "final_text", text: "x" }
    insertAfter(lines, "session_state_changed", 1, { event_type: "candidate_sampled", data: sample, step: "model-0" })
  })
]

const tries: ReadonlyArray<Damage> = [
  edit("T55", "retried by key", "a try that is left out", (lines) => {
    data(lines, "effect_intent", 1)["attempt"] = 3
    data(lines, "retry_scheduled", 1)["attempt"] = 3
    data(lines, "retry_scheduled", 1)["delay_ms"] = 4_000
    data(lines, "effect_intent", 2)["attempt"] = 4
  }),
  edit("T55", "retried by key", "a try under another key", (lines) => {
    data(lines, "effect_intent", 1)["key"] = otherDigest
  }),
  edit("T55", "retried by key", "a try that nothing led to", (lines) => {
    drop(lines, "retry_scheduled", 1)
  }),
  edit("T56", "retried by key", "a retry that comes too early", (lines) => {
    data(lines, "retry_scheduled", 1)["delay_ms"] = 1_000
  }),
  edit("T56", "retried read", "a retry of a read that comes too early", (lines) => {
    data(lines, "retry_scheduled")["delay_ms"] = 0
  }),
  edit("T56", "retried by key", "one more retry than the policy has", (lines) => {
    gates(lines)["retry"]["attempts"] = 2
    for (const at of [0, 1]) data(lines, "retry_scheduled", at)["of"] = 2
  }),
  edit("T56", "retried by key", "a retry after a failure that says what happened", (lines) => {
    data(lines, "retry_scheduled")["class"] = "postcondition"
  }),
  edit("T56", "retried by key", "a retry that the profile rules out", (lines) => {
    gates(lines)["profile"]["retry"] = "dangerous"
  }),
  edit("T56", "retried by key", "a retry that the tool rules out", (lines) => {
    toolOf(lines, "pay")["retry"] = "never"
  }),
  edit("T57", "approved", "a success settled as failed", (lines) => {
    data(lines, "effect_settled")["status"] = "settled_failed"
  }),
  edit("T57", "approved", "evidence from where the tool has none", (lines) => {
    data(lines, "effect_settled")["evidence"]["source"] = "sensor"
  }),
  edit("T58", "approved", "a known effect left to a person", (lines) => {
    const { call, key, tool } = data(lines, "effect_settled")
    insertAfter(lines, "effect_settled", 0, { event_type: "effect_escalated", data: { call, tool, key, attempts: [] } })
  }),
  edit("T58", "never retried", "an escalation that lists no attempts", (lines) => drop(lines, "effect_escalated")),
  edit("T58", "never retried", "an escalation of another effect", (lines) => {
    data(lines, "effect_escalated")["key"] = otherDigest
  }),
  edit("T59", "no longer ready", "looked at again as if it had waited in the queue", (lines) => {
    data(lines, "precondition_checked")["after"] = "queue"
  }),
  edit("T59", "paid and undone", "an effect whose precondition no longer holds", (lines) => {
    data(lines, "precondition_checked")["pre"] = "fail"
  }),
  edit("T62", "lost and found", "a look under another key", (lines) => {
    data(lines, "effect_probed")["key"] = otherDigest
  }),
  edit("T62", "lost and found", "a look where the ledger has none", (lines) => {
    toolOf(lines, "book")["ledger"] = "external"
    data(lines, "effect_intent")["mode"] = "external"
  }),
  edit("T62", "accepted, then done", "accepted where nothing is performed", (lines) => {
    event(lines, "effect_accepted").step = "tool-7"
  }),
  edit("T32", "lost and found", "two late outcomes of one try", (lines) => {
    const late = { call: "call-0-0", tool: "book", ok: true, failure_kind: null }
    for (const _ of [1, 2]) insertAfter(lines, "effect_settled", 0, { event_type: "late_outcome", data: late })
  })
]

export const damagedContracts: ReadonlyArray<Damage> = [...legality, ...choice, ...samples, ...tries]
