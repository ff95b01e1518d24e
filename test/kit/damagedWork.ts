/** Damage to what the trace says of calls, limits and the end. */
import { data, drop, endAs, event, insertAfter, type Lines, repeat, swap, terminal } from "./corrupt.ts"
import { type Damage, edit, otherDigest } from "./damage.ts"

const redactedIn = (lines: Lines, type: string) => event(lines, type).redacted![0]!

const calls: ReadonlyArray<Damage> = [
  edit("T21", "one tool", "a call checked twice", (lines) => repeat(lines, "legality_checked")),
  edit("T21", "one tool", "a call validated unchecked", (lines) => drop(lines, "legality_checked")),
  edit("T21", "unknown tool", "a call rejected unchecked", (lines) => drop(lines, "legality_checked")),
  edit("T21", "unknown tool", "a call rejected as unknown after three passes", (lines) => {
    Object.assign(data(lines, "legality_checked"), { schema: "pass", scopes: "pass", pre: "pass", blocked_by: [] })
    delete data(lines, "tool_call_rejected")["stage"]
  }),
  edit("T22", "one tool", "a call validated though a check failed", (lines) => {
    Object.assign(data(lines, "legality_checked"), { pre: "fail", blocked_by: ["pre"] })
  }),
  edit("T22", "one tool", "a call validated because a ledger knows it that does not", (lines) => {
    data(lines, "legality_checked")["pre"] = "not_evaluated"
  }),
  edit("T22", "one tool", "a call validated with another risk than its tool has", (lines) => {
    data(lines, "tool_call_validated")["risk"] = "local-write"
  }),
  edit("T23", "approved", "an approval of something else than was asked", (lines) => {
    data(lines, "approval_decided")["digest"] = otherDigest
  }),
  edit("T23", "approved", "an approval of other arguments than were validated", (lines) => {
    data(lines, "approval_requested")["digest"] = otherDigest
    data(lines, "approval_decided")["digest"] = otherDigest
  }),
  edit("T23", "denied", "a refusal nobody decided", (lines) => {
    data(lines, "approval_decided")["decision"] = "allow"
  }),
  edit("T24", "approved", "a denied call that runs", (lines) => {
    data(lines, "approval_decided")["decision"] = "deny"
  }),
  edit("T24", "approved", "an undecided call that runs", (lines) => drop(lines, "approval_decided")),
  edit("T24", "one tool", "a call that runs unvalidated", (lines) => drop(lines, "tool_call_validated")),
  edit("T25", "approved", "an effect without intent", (lines) => drop(lines, "effect_intent")),
  edit("T25", "approved", "an effect without settlement", (lines) => drop(lines, "effect_settled")),
  edit("T25", "approved", "a settlement under another key", (lines) => {
    data(lines, "effect_settled")["key"] = otherDigest
  }),
  edit("T25", "approved", "a settlement that contradicts the outcome", (lines) => {
    Object.assign(data(lines, "effect_settled"), { outcome: "failed", status: "settled_failed" })
  }),
  edit("T26", "one tool", "an execution that finishes elsewhere", (lines) => {
    event(lines, "tool_execution_finished").step = "tool-1"
  }),
  edit("T26", "one tool", "an execution that finishes as another call", (lines) => {
    data(lines, "tool_execution_finished")["call_seq"] = 2
  }),
  edit("T26", "one tool", "a success that failed", (lines) => {
    data(lines, "tool_execution_finished")["failure_kind"] = "crashed"
  }),
  edit("T27", "one tool", "an execution that is left out", (lines) => {
    for (const type of ["tool_execution_started", "tool_execution_finished"]) {
      data(lines, type)["call_seq"] = 2
      event(lines, type).step = "tool-1"
    }
  }),
  edit("T28", "two calls", "a second call under the policy of one", (lines) => {
    data(lines, "run_started")["calls"] = "single"
  }),
  edit("T28", "parallel reads that wait", "two calls at a time in a run of one after another", (lines) => {
    data(lines, "run_started")["calls"] = "sequential"
  }),
  edit("T29", "two calls", "answers out of order", (lines) => swap(lines, "tool_result_committed", 0, 1)),
  edit("T29", "two calls", "a call without answer", (lines) => drop(lines, "tool_result_committed", 1)),
  edit("T29", "two calls", "a call with two answers", (lines) => repeat(lines, "tool_result_committed", 1)),
  edit("T29", "cancelled in a tool", "a stopped call without answer", (lines) => {
    drop(lines, "call_skipped")
    terminal(lines)["skipped_calls"] = 0
  }),
  edit("T30", "one tool", "a success told as a failure", (lines) => {
    data(lines, "tool_result_committed")["ok"] = false
  }),
  edit("T30", "cancelled in an external tool", "an unknown effect told as none", (lines) => {
    data(lines, "tool_result_uncommitted")["effect"] = "none"
  }),
  edit("T30", "tool calls in a turn", "a skipped call told as a result", (lines) => {
    const skipped = event(lines, "call_skipped")
    skipped.event_type = "tool_result_uncommitted"
    skipped.data = { ...skipped.data, effect: "none", answer: "" }
    terminal(lines)["skipped_calls"] = 0
    endAs(lines, "run_cancelled", { at: "between-calls" })
  }),
  edit("T31", "malformed", "feedback about another mistake", (lines) => {
    data(lines, "feedback_committed")["code"] = "empty_turn"
  }),
  edit("T31", "repairs", "a mistake without feedback", (lines) => drop(lines, "feedback_uncommitted")),
  edit("T32", "one tool", "a late outcome of a call that answered in time", (lines) =>
    insertAfter(lines, "tool_execution_finished", 0, {
      event_type: "late_outcome",
      data: { call: "call-0-0", tool: "add", ok: true, failure_kind: null }
    })
  ),
  edit("T32", "late outcome", "two late outcomes of one call", (lines) => repeat(lines, "late_outcome")),
  edit("T33", "artifact", "an artifact of a call that does not run", (lines) => {
    const [written] = lines.splice(lines.indexOf(event(lines, "artifact_written")), 1)
    lines.splice(lines.indexOf(event(lines, "tool_execution_started")), 0, written!)
  }),
  edit("T33", "artifact", "a finish that forgets its artifact", (lines) => {
    data(lines, "tool_execution_finished")["artifact_ids"] = []
  }),
  edit("T33", "artifact", "an id that is not made of the hash", (lines) => {
    data(lines, "artifact_written")["artifact_id"] = "x-a.txt"
    data(lines, "tool_execution_finished")["artifact_ids"] = ["x-a.txt"]
  })
]

const limits: ReadonlyArray<Damage> = [
  edit("T35", "one tool", "a turn too many", (lines) => {
    data(lines, "run_started")["limits"]["modelTurns"] = 1
  }),
  edit("T36", "two calls", "an execution too many", (lines) => {
    data(lines, "run_started")["limits"]["toolCalls"] = 1
  }),
  edit("T37", "one tool", "a turn that may take more than the limit", (lines) => {
    data(lines, "model_call_started")["max_tokens"] += 1
  }),
  edit("T37", "one tool", "a turn that took more than the limit", (lines) => {
    const { output_tokens } = data(lines, "model_call_finished")
    data(lines, "model_call_finished")["output_tokens"] = 513
    terminal(lines)["output_tokens"] += 513 - output_tokens
  }),
  edit("T38", "malformed", "a turn after too many repairs", (lines) => {
    data(lines, "run_started")["limits"]["repairs"] = 0
  }),
  edit("T38", "unknown tool", "a turn after too many refusals", (lines) => {
    data(lines, "run_started")["limits"]["repairs"] = 0
  }),
  edit("T39", "one tool", "a deadline beyond the limit", (lines) => {
    data(lines, "tool_execution_started")["deadline_ms"] = 60_001
  }),
  edit("T39", "final answer", "a turn after the wall time", (lines) => {
    for (const line of lines.slice(6)) line.t_ms += 700_000
    terminal(lines)["total_ms"] += 700_000
  }),
  edit("T40", "one tool", "an answer longer than the limit", (lines) => {
    const payload = "x".repeat(32_769)
    const answer = JSON.stringify({ ok: true, result: payload })
    Object.assign(data(lines, "tool_execution_finished"), { payload, payload_bytes: answer.length })
    data(lines, "tool_result_committed")["answer"] = answer
  })
]

const counted = ["turns", "tool_calls", "rejected_calls", "skipped_calls", "artifacts", "output_tokens"]

const ends: ReadonlyArray<Damage> = [
  ...counted.map((name) =>
    edit("T41", "one tool", `one too many of ${name}`, (lines) => {
      terminal(lines)[name] += 1
    })
  ),
  edit("T42", "engine failure", "completed without an answer", (lines) =>
    endAs(lines, "run_completed", { final_text: "" })
  ),
  edit("T42", "final answer", "a limit after a final answer", (lines) =>
    endAs(lines, "run_terminated", { reason: "context_exhausted" })
  ),
  edit("T42", "tool calls in a turn", "needs input that nobody asked for", (lines) =>
    endAs(lines, "run_needs_input", { question: "?" })
  ),
  edit("T42", "suspended", "awaits approval of another call", (lines) => {
    terminal(lines)["call"] = "call-0-0"
  }),
  edit("T42", "cancelled in generation", "an engine failure that was a cancellation", (lines) => {
    data(lines, "turn_rolled_back")["reason"] = "engine_error"
  }),
  edit("T42", "cancelled in a tool", "an escalation with every effect known", (lines) =>
    endAs(lines, "run_terminated", { reason: "escalated" })
  ),
  edit("T42", "cancelled in a tool", "a loop of one call", (lines) =>
    endAs(lines, "run_terminated", { reason: "loop_detected" })
  ),
  edit("T43", "model turns", "a limit that was not reached", (lines) => {
    terminal(lines)["limit_hit"] = "tool_calls"
  }),
  edit("T43", "tool calls in a turn", "wall time that had not passed", (lines) => {
    terminal(lines)["limit_hit"] = "wall_time"
  }),
  edit("T43", "repairs", "repairs that were fewer", (lines) => {
    data(lines, "run_started")["limits"]["repairs"] = 3
  }),
  edit("T43", "half an answer", "half an answer at another limit", (lines) => {
    data(lines, "run_started")["limits"]["modelTurns"] = 1
    data(lines, "session_state_changed", -1)["role"] = "assistant_partial"
    terminal(lines)["limit_hit"] = "wall_time"
    data(lines, "run_started")["limits"]["wallMillis"] = 1
  }),
  edit("T44", "cancelled in a tool", "cancelled in preparation, with a tool running", (lines) => {
    terminal(lines)["at"] = "preparing"
  }),
  edit("T44", "cancelled in a tool", "cancelled in generation, with a tool running", (lines) => {
    terminal(lines)["at"] = "generation"
  }),
  edit("T44", "cancelled while asked", "cancelled between calls, with a question open", (lines) => {
    terminal(lines)["at"] = "between-calls"
  }),
  edit("T44", "cancelled in generation", "cancelled in a tool, with none running", (lines) => {
    terminal(lines)["at"] = "tool"
  })
]

const told = (text: string) => JSON.stringify({ ok: true, result: text })

const words: ReadonlyArray<Damage> = [
  edit("T18", "one tool", "a final text with calls", (lines) => {
    data(lines, "assistant_action_parsed", 1)["count"] = 1
  }),
  edit("T30", "one tool", "another answer than the result", (lines) => {
    data(lines, "tool_result_committed")["answer"] = told("3")
  }),
  edit("T30", "one tool", "another answer, said to be shortened", (lines) => {
    Object.assign(data(lines, "tool_result_committed"), { answer: told("3"), truncated: true })
  }),
  edit("T30", "one tool", "a whole answer said to be shortened", (lines) => {
    data(lines, "tool_result_committed")["truncated"] = true
  }),
  edit("T30", "failing tool", "another answer than the failure", (lines) => {
    const answer = data(lines, "tool_result_committed")
    answer["answer"] = answer["answer"].replace("execution_failed", "not_found")
  }),
  edit("T30", "unknown tool", "another answer than the rejection", (lines) => {
    const answer = data(lines, "tool_result_committed")
    answer["answer"] = answer["answer"].replace("there is no tool", "there was no tool")
  }),
  edit("T30", "long result", "a shortened answer with another end", (lines) => {
    const answer = JSON.parse(data(lines, "tool_result_committed")["answer"])
    answer.result.tail = `${answer.result.tail}?`
    data(lines, "tool_result_committed")["answer"] = JSON.stringify(answer)
  }),
  edit("T30", "cancelled in a tool", "another uncommitted answer", (lines) => {
    data(lines, "tool_result_uncommitted")["answer"] = told("all is well")
  }),
  edit("T30", "resumed with an answer", "an answer from before, told as the contrary", (lines) => {
    data(lines, "tool_result_committed")["answer"] = '{"ok":false,"kind":"crashed","errors":[]}'
  }),
  edit("T30", "one tool, no content", "an answer of another length", (lines) => {
    data(lines, "tool_result_committed")["answer"]["bytes"] += 1
  }),
  edit("T42", "one tool", "a final text the model never wrote", (lines) => {
    terminal(lines)["final_text"] = "It is 3."
  }),
  edit("T42", "one tool, no content", "a final text with another digest", (lines) => {
    terminal(lines)["final_text"]["hmac"] = otherDigest
  }),
  edit("T42", "one tool, no content", "a final text longer than its turn", (lines) => {
    terminal(lines)["final_text"]["bytes"] += 1
  }),
  ...["legality_checked", "tool_result_committed"].map((type) =>
    edit("T45", "one tool", `another tool in ${type}`, (lines) => {
      data(lines, type)["tool"] = "long"
    })
  ),
  edit("T45", "unknown tool", "another tool in tool_call_rejected", (lines) => {
    data(lines, "tool_call_rejected")["tool"] = "add"
  }),
  edit("T45", "unknown tool, no content", "a registered tool for one nobody knows", (lines) => {
    data(lines, "tool_result_committed")["tool"] = "add"
  }),
  edit("T45", "cancelled in a tool", "another tool in tool_result_uncommitted", (lines) => {
    data(lines, "tool_result_uncommitted")["tool"] = "add"
  }),
  edit("T45", "tool calls in a turn", "another tool in call_skipped", (lines) => {
    data(lines, "call_skipped")["tool"] = "wait"
  }),
  edit("T64", "redacted", "a replacement more than there are marks", (lines) => {
    redactedIn(lines, "run_started").count += 1
  }),
  edit("T64", "redacted", "a redacted field that is not there", (lines) => {
    redactedIn(lines, "run_started").at = "/tasks"
  }),
  edit("T64", "redacted", "marks of a rule that the run does not have", (lines) => {
    event(lines, "run_started").data["redact"] = ["other"]
  }),
  edit("T64", "redacted", "a field that is named twice", (lines) => {
    event(lines, "run_started").redacted?.push(redactedIn(lines, "run_started"))
  }),
  edit("T42", "redacted", "a final text that reads like the turn's and was another", (lines) => {
    redactedIn(lines, "run_completed").hmac = "0".repeat(64)
  }),
  edit("T46", "one tool", "an answer of another size", (lines) => {
    data(lines, "tool_execution_finished")["payload_bytes"] += 1
  }),
  edit("T46", "one tool, no content", "an answer of another size", (lines) => {
    data(lines, "tool_execution_finished")["payload_bytes"] += 1
  }),
  edit("T46", "failing tool", "a failure of another kind than its payload", (lines) => {
    data(lines, "tool_execution_finished")["failure_kind"] = "crashed"
  }),
  ...["tool_ms", "model_ms", "total_ms"].map((name) =>
    edit("T41", "one tool", `${name} that nobody spent`, (lines) => {
      terminal(lines)[name] += 10_000
    })
  ),
  edit("T41", "tool deadline", "tool_ms that is forgotten", (lines) => {
    terminal(lines)["tool_ms"] = 0
  }),
  edit("T41", "late outcome", "less time than passed", (lines) => {
    for (const line of lines.slice(-1)) line.t_ms += 6_000
  })
]

const phases: ReadonlyArray<Damage> = [
  edit("T68", "one tool", "a turn in a phase that did not start", (lines) => {
    data(lines, "model_call_started")["phase"] = "report"
  }),
  edit("T68", "one tool", "a phase with settings that provenance does not have", (lines) => {
    data(lines, "phase_started")["temperature"] = 0.7
  }),
  edit("T68", "one tool", "a phase of another turn", (lines) => {
    data(lines, "phase_started", 1)["turn"] = 2
  }),
  edit("T69", "a talk", "a talk that nobody has begun hands over", (lines) => {
    data(lines, "routed")["by"] = "chat"
  }),
  edit("T69", "routed to a task", "a run that is routed twice", (lines) => repeat(lines, "routed")),
  edit("T69", "handed over", "a talk that hands over to a talk", (lines) => {
    data(lines, "routed", 1)["route"] = "chat"
    const call = event(lines, "assistant_action_parsed", 1)
    call.data["action"] = "tool_calls"
  }),
  edit("T42", "a question that is said", "a question that completes", (lines) =>
    endAs(lines, "run_completed", { final_text: "?" })
  ),
  edit("T42", "one tool", "needs input, and nobody asked", (lines) =>
    endAs(lines, "run_needs_input", { question: "?" })
  ),
  edit("T36", "answered in the session", "more executions than all parts may have", (lines) => {
    data(lines, "run_started")["limits"]["toolCalls"] = 1
  })
]

export const damagedWork: ReadonlyArray<Damage> = [...calls, ...limits, ...ends, ...words, ...phases]
