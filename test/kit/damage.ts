/**
 * One way to damage a good trace for every invariant that is about events: which trace, what is done to it, and which
 * invariant alone must notice.
 */
import type { InvariantId } from "../../src/effects/trace/TraceValidator.ts"
import type { ContractedName } from "./contractTraces.ts"
import {
  chain,
  corrupt,
  data,
  drop,
  endAs,
  event,
  insertAfter,
  type Lines,
  parse,
  repeat,
  swap,
  terminal
} from "./corrupt.ts"
import type { GoodName } from "./traces.ts"

type TraceName = GoodName | ContractedName

export interface Damage {
  readonly invariant: InvariantId
  readonly trace: TraceName
  readonly claim: string
  readonly apply: (text: string) => string
}

const edit = (invariant: InvariantId, trace: TraceName, claim: string, change: (lines: Lines) => void): Damage => ({
  invariant,
  trace,
  claim,
  apply: (text) => corrupt(text, change)
})

const raw = (invariant: InvariantId, trace: TraceName, claim: string, apply: (text: string) => string): Damage => ({
  invariant,
  trace,
  claim,
  apply
})

const hidden = { bytes: 5, hmac: "0".repeat(64) }
const otherDigest = "f".repeat(64)

const putLine = (text: string, line: string): string => {
  const lines = text.split("\n")
  lines.splice(5, 0, line)
  return lines.join("\n")
}

const renumbered = (text: string): string => {
  const lines = parse(text)
  for (const line of lines.slice(6)) line.seq += 1
  terminal(lines)["events"] += 1
  return chain(lines)
}

const envelope: ReadonlyArray<Damage> = [
  raw("T01", "one tool", "a line that is not JSON", (text) => putLine(text, "{oops")),
  raw("T01", "one tool", "a line without a run", (text) => putLine(text, '{"schema":"writ.trace.v1","seq":5}')),
  edit("T02", "one tool", "a line of another schema", (lines) => {
    lines[7]!.schema = "writ.trace.v9"
  }),
  edit("T02", "one tool", "a line of Ember's schema", (lines) => {
    lines[7]!.schema = "ember.agent.trace.v1"
  }),
  edit("T03", "one tool", "a line of another run", (lines) => {
    lines[7]!.run_id = "run-2"
  }),
  raw("T04", "one tool", "a number is left out", renumbered),
  raw("T05", "one tool", "a byte is changed", (text) => text.replace('"seq":7,', '"seq": 7,')),
  raw("T05", "one tool", "the first line claims to follow another", (text) => {
    const [first, ...rest] = parse(text)
    first!.prev = otherDigest
    const restOfChain = chain([first!, ...rest])
      .split("\n")
      .slice(1)
    return [JSON.stringify(first), ...restOfChain]
      .join("\n")
      .replace(/"prev":"[0-9a-f]{64}"(?=\}\n)/, `"prev":"${otherDigest}"`)
  }),
  edit("T06", "one tool", "time runs backwards", (lines) => {
    lines[7]!.t_ms = 5
  })
]

const fields: ReadonlyArray<Damage> = [
  edit("T07", "one tool", "an event nobody knows", (lines) =>
    insertAfter(lines, "session_state_changed", 1, { event_type: "moon_phase", data: {} })
  ),
  edit("T08", "one tool", "a number that is text", (lines) => {
    data(lines, "tool_execution_finished")["duration_ms"] = "1"
  }),
  edit("T08", "one tool", "a field that is missing", (lines) => {
    delete data(lines, "model_call_started")["seed"]
  }),
  edit("T08", "one tool", "a span of three", (lines) => {
    data(lines, "session_state_changed")["span"] = [0, 1, 2]
  }),
  edit("T09", "one tool, no content", "a task in the clear", (lines) => {
    data(lines, "run_started")["task"] = "the task"
  }),
  edit("T09", "one tool, no content", "arguments in the clear", (lines) => {
    data(lines, "tool_call_validated")["arguments"] = { a: 1, b: 1 }
  }),
  edit("T09", "one tool, no content", "a digest with something beside it", (lines) => {
    data(lines, "tool_execution_finished")["payload"]["text"] = "5"
  }),
  edit("T09", "unknown tool, no content", "the name of a tool nobody registered", (lines) => {
    data(lines, "tool_call_rejected")["tool"] = "subtract"
  }),
  edit("T09", "invalid arguments, no content", "a reason in the clear", (lines) => {
    data(lines, "tool_call_rejected")["errors"][0]["reason"] = "expected number"
  }),
  edit("T09", "token events, no content", "the ids of tokens", (lines) => {
    data(lines, "generation_token")["ids"] = [72]
  }),
  edit("T09", "one tool", "hidden text where content is on", (lines) => {
    data(lines, "model_call_finished")["text"] = hidden
  })
]

const frame: ReadonlyArray<Damage> = [
  edit("T10", "final answer", "no provenance", (lines) => drop(lines, "provenance")),
  edit("T10", "one tool", "provenance twice", (lines) => {
    lines.splice(6, 0, structuredClone(lines[1]!))
  }),
  edit("T11", "one tool", "two ends", (lines) => repeat(lines, "run_completed")),
  edit("T11", "one tool", "something after the end", (lines) => {
    lines.push(structuredClone(event(lines, "message_committed")))
  })
]

const context: ReadonlyArray<Damage> = [
  edit("T12", "one tool", "a span that leaves a gap", (lines) => {
    data(lines, "session_state_changed", 1)["span"][0] += 1
  }),
  edit("T12", "one tool", "a span that ends elsewhere than the context", (lines) => {
    data(lines, "session_state_changed", 1)["span"][1] -= 1
  }),
  edit("T12", "final answer", "a first span that is not where the run started", (lines) => {
    data(lines, "run_started")["committed_len"] = 3
  }),
  edit("T12", "resumed in generation", "messages that come back with a gap between them", (lines) => {
    data(lines, "run_resumed")["spans"][1][0] += 1
  }),
  edit("T12", "resumed in generation", "messages that come back and end before the history does", (lines) => {
    data(lines, "run_resumed")["spans"].pop()
  }),
  edit("T12", "resumed in generation", "a kept state that held nothing", (lines) => {
    data(lines, "run_resumed")["spans"] = []
    data(lines, "run_resumed")["kept_state"] = "loaded"
  }),
  edit("T13", "one tool", "a span nobody names", (lines) => drop(lines, "message_committed", 1)),
  edit("T13", "one tool", "a span in another step than its message", (lines) => {
    event(lines, "session_state_changed", 1).step = "run"
  }),
  edit("T13", "one tool", "a message that never entered", (lines) =>
    insertAfter(lines, "session_state_changed", 1, structuredClone(event(lines, "message_committed", 1)))
  ),
  edit("T14", "one tool", "a turn that starts elsewhere", (lines) => {
    data(lines, "model_call_started", 1)["committed_len"] += 1
  }),
  edit("T14", "cancelled in generation", "a rollback that leaves something", (lines) => {
    data(lines, "turn_rolled_back")["committed_len"] += 1
  })
]

const turns: ReadonlyArray<Damage> = [
  edit("T15", "one tool", "a finish in another step", (lines) => {
    event(lines, "model_call_finished").step = "model-7"
  }),
  edit("T15", "engine failure", "a start without an end", (lines) => drop(lines, "turn_rolled_back")),
  edit("T15", "token events", "a token outside its turn", (lines) => {
    const [token] = lines.splice(lines.indexOf(event(lines, "generation_token")), 1)
    lines.splice(6, 0, token!)
  }),
  edit("T16", "one tool", "a turn that is left out", (lines) => {
    for (const line of lines) {
      if (line.step !== "model-1") continue
      line.step = "model-2"
      if (line.data["turn"] === 1) line.data["turn"] = 2
    }
  }),
  edit("T16", "continued answer", "an attempt that is left out", (lines) => {
    data(lines, "model_call_started", 1)["attempt"] = 2
    data(lines, "model_call_finished", 1)["attempt"] = 2
  }),
  edit("T16", "continued answer", "a second attempt though the first ended by itself", (lines) => {
    data(lines, "model_call_finished")["stop_reason"] = "eog"
  }),
  edit("T17", "one tool", "a seed used twice", (lines) => {
    data(lines, "model_call_started", 1)["seed"] = data(lines, "model_call_started")["seed"]
  }),
  edit("T18", "one tool", "a turn read twice", (lines) => repeat(lines, "assistant_action_parsed")),
  edit("T18", "one tool", "a mistake kept as an answer", (lines) => {
    data(lines, "assistant_action_parsed", 1)["action"] = "malformed"
    data(lines, "assistant_action_parsed", 1)["code"] = "unclosed_call"
    terminal(lines)["rejected_calls"] += 1
    const { committed_len } = data(lines, "session_state_changed", -1)
    const span = [committed_len, committed_len]
    insertAfter(lines, "session_state_changed", -1, {
      event_type: "legality_checked",
      data: {
        call: "call-1-0",
        ordinal: 0,
        tool: "",
        schema: "fail",
        scopes: "not_evaluated",
        pre: "not_evaluated",
        cause: "malformed",
        class: "schema",
        stage: "parse"
      }
    })
    insertAfter(lines, "legality_checked", -1, {
      event_type: "feedback_committed",
      data: { code: "unclosed_call", content: "" }
    })
    insertAfter(lines, "feedback_committed", 0, {
      event_type: "session_state_changed",
      data: { role: "feedback", span, committed_len }
    })
  }),
  edit("T19", "cancelled in generation", "work after a rollback", (lines) => {
    const { committed_len } = data(lines, "turn_rolled_back")
    const span = [committed_len, committed_len]
    const message = { role: "user", content: "more" }
    insertAfter(lines, "turn_rolled_back", 0, { event_type: "message_committed", data: message, step: "user" })
    insertAfter(lines, "message_committed", -1, {
      event_type: "session_state_changed",
      data: { role: "user", span, committed_len },
      step: "user"
    })
  }),
  edit("T20", "one tool", "a turn before the answers", (lines) => {
    const answer = event(lines, "tool_result_committed")
    answer.event_type = "message_committed"
    answer.data = { role: "user", content: "never mind" }
    data(lines, "session_state_changed", 3)["role"] = "user"
  })
]

const compacted = "a session's third task, compacted"

const compactions: ReadonlyArray<Damage> = [
  edit("T65", compacted, "a compaction in a run that refuses", (lines) => {
    data(lines, "provenance")["context"]["on_full"] = "refuse"
  }),
  edit("T65", compacted, "a compaction although there was room", (lines) => {
    data(lines, "context_compacted")["needed"] = 1
  }),
  edit("T65", compacted, "a compaction of a context that was longer", (lines) => {
    data(lines, "context_compacted")["before"] += 1
  }),
  edit("T66", compacted, "a compaction that begins inside of the tools", (lines) => {
    data(lines, "context_compacted")["dropped"][0] -= 1
  }),
  edit("T66", `${compacted} in its turn`, "a compaction that takes part of the task along", (lines) => {
    data(lines, "context_compacted")["dropped"][1] = data(lines, "session_state_changed")["span"][0] + 1
  }),
  edit("T66", compacted, "more removed at once than ever", (lines) => {
    data(lines, "context_compacted")["removed"] = 0
  }),
  edit("T67", compacted, "a message that came back elsewhere", (lines) => {
    data(lines, "context_compacted")["kept"][0][1] -= 1
  }),
  edit("T67", compacted, "a message less than came back", (lines) => {
    data(lines, "context_compacted")["kept"].pop()
  }),
  edit("T67", compacted, "a turn before everything is back", (lines) => {
    data(lines, "context_compacted", -1)["left"] = 1
  }),
  edit("T67", compacted, "a compaction before everything is back", (lines) => {
    data(lines, "context_compacted")["left"] = 1
  })
]

const restarted = "engine opened again"

const restarts: ReadonlyArray<Damage> = [
  edit("T70", restarted, "a restart that was there before", (lines) => {
    data(lines, "engine_restarted", 1)["restarts"] = 1
  }),
  edit("T70", restarted, "more tokens than there ever were", (lines) => {
    data(lines, "engine_restarted")["tokens"] = data(lines, "session_state_changed", -1)["committed_len"] + 1
  }),
  edit("T70", restarted, "a turn that starts once more than it may", (lines) => {
    const at = lines.indexOf(event(lines, "engine_restarted", 1))
    const more = structuredClone(lines.slice(at - 2, at + 1))
    more[2]!.data["restarts"] = 3
    lines.splice(at + 1, 0, ...more)
  })
]

const childRuns: ReadonlyArray<Damage> = [
  edit("T71", "around another run", "a run of a call that is not being executed", (lines) => {
    data(lines, "child_run_started")["call"] = "call-0-1"
  }),
  edit("T71", "around another run", "a run that is two deeper", (lines) => {
    data(lines, "child_run_started")["depth"] = 2
  }),
  edit("T71", "around another run", "a run that is named twice", (lines) => repeat(lines, "child_run_started")),
  edit("T71", "inside another run", "a run that lies in itself", (lines) => {
    const { run_id } = lines[0]!
    data(lines, "run_started")["parent"]["run"] = run_id
  })
]

export const damages: ReadonlyArray<Damage> = [
  ...childRuns,
  ...envelope,
  ...fields,
  ...frame,
  ...context,
  ...turns,
  ...compactions,
  ...restarts
]

export { edit, endAs, otherDigest, repeat, swap }
