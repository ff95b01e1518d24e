import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, type Approver, allowAll } from "../../src/effects/Policy.ts"
import { layerScripted } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { play } from "../kit/run.ts"
import { call, calls, shape, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const add = call("add", { a: 2, b: 3 })

describe("a run that completes", () => {
  it.effect("one tool round trip is exact, event by event", () =>
    Effect.gen(function* () {
      const { context, outcome, performed, text } = yield* play([add, "It is 5."])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is 5." })
      assert.deepStrictEqual(performed, ['add:{"a":2,"b":3}'])
      assert.deepStrictEqual(shape(outcome), ["system", "user", "assistant:calls", "tool:add", "assistant:final"])
      assert.include(context, '<tool_response>\n{"ok":true,"result":5}\n</tool_response>')
      assert.deepStrictEqual(types(text), [
        "run_started",
        "provenance",
        "message_committed",
        "session_state_changed",
        "message_committed",
        "session_state_changed",
        "phase_started",
        "model_call_started",
        "model_call_finished",
        "assistant_action_parsed",
        "session_state_changed",
        "legality_checked",
        "tool_call_validated",
        "tool_execution_started",
        "tool_execution_finished",
        "tool_result_committed",
        "session_state_changed",
        "phase_started",
        "model_call_started",
        "model_call_finished",
        "assistant_action_parsed",
        "session_state_changed",
        "run_completed"
      ])
    })
  )

  it.effect("a final answer needs no tool", () =>
    Effect.gen(function* () {
      const { outcome } = yield* play(["Hello."])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "Hello." })
      assert.strictEqual(outcome.toolCalls, 0)
    })
  )

  it.effect("without tools a run answers, and nothing it writes is a call", () =>
    Effect.gen(function* () {
      const none = yield* Registry.pick((yield* TestTools.make()).registry, [])
      const outcome = yield* Agent.run({ task: "t", tools: none }).pipe(Effect.provide(layerScripted({ turns: [add] })))
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: add })
      assert.strictEqual(outcome.toolCalls, 0)
    })
  )

  it.effect("an artifact is told by the trace with its name, size and hash, before the call's result", () =>
    Effect.gen(function* () {
      const { events, outcome, text } = yield* play([call("save", { name: "a.txt", content: "hi" }), "saved"])
      const written = events.find((event) => event.event_type === "artifact_written")
      assert.deepInclude(written?.data, {
        call: "call-0-0",
        name: "a.txt",
        sha256: hash("sha256", "hi"),
        size_bytes: 2,
        media_type: "text/plain",
        producer_tool: "save",
        artifact_id: outcome.artifacts[0]?.artifactId
      })
      assert.isBelow(types(text).indexOf("artifact_written"), types(text).indexOf("tool_execution_finished"))
    })
  )

  it.effect("several steps of one call each put every result into the context", () =>
    Effect.gen(function* () {
      const { context, outcome } = yield* play([add, call("add", { a: 5, b: 7 }), "12"])
      assert.deepStrictEqual([outcome.turns, outcome.toolCalls], [3, 2])
      assert.include(context, '{"ok":true,"result":5}')
      assert.include(context, '{"ok":true,"result":12}')
    })
  )

  it.effect("several calls of one turn run in order and are answered in order", () =>
    Effect.gen(function* () {
      const { context, outcome, performed } = yield* play([
        calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }]),
        "ok"
      ])
      assert.deepStrictEqual(performed, ['add:{"a":1,"b":1}', 'add:{"a":2,"b":2}'])
      assert.deepStrictEqual([outcome.turns, outcome.toolCalls], [2, 2])
      assert.isBelow(context.indexOf('"result":2'), context.indexOf('"result":4'))
    })
  )

  it.effect("reads of one turn run side by side under `parallel`, and are still answered in call order", () =>
    Effect.gen(function* () {
      const turn = calls(["wait", { millis: 0 }], ["add", { a: 2, b: 2 }])
      const { events } = yield* play([turn, "ok"], { calls: "parallel" })
      const of = (type: string) => events.filter((event) => event.event_type === type)
      assert.deepStrictEqual(
        of("tool_result_committed").map((event) => event.data["ordinal"]),
        [0, 1]
      )
      assert.isBelow(of("tool_execution_started")[1]!.seq, of("tool_execution_finished")[0]!.seq + 2)
    })
  )

  it.effect("under `single` only the first call runs and each of the others is told so", () =>
    Effect.gen(function* () {
      const turn = calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }])
      const { context, outcome, performed } = yield* play([turn, "ok"], { calls: "single" })
      assert.strictEqual(performed.length, 1)
      assert.strictEqual(outcome.rejected, 1)
      assert.include(context, '"kind":"not_executed"')
    })
  )

  it.effect("the same script gives the same bytes of trace", () =>
    Effect.gen(function* () {
      const once = yield* play([add, "It is 5."])
      const again = yield* play([add, "It is 5."])
      assert.strictEqual(once.text, again.text)
    })
  )
})

describe("what goes wrong with a call goes back to the model", () => {
  it.effect("a failing tool is a structured answer and the run goes on", () =>
    Effect.gen(function* () {
      const { context, events, outcome } = yield* play([call("broken", { how: "error" }), "sorry"])
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.include(context, '{"ok":false,"kind":"execution_failed","errors":[{"path":"","reason":"it broke"}]}')
      assert.strictEqual(events.find((event) => event.event_type === "tool_execution_finished")?.data["ok"], false)
    })
  )

  it.effect("a tool with a bug is contained as a crash", () =>
    Effect.gen(function* () {
      const { events, outcome } = yield* play([call("broken", { how: "defect" }), "sorry"])
      assert.strictEqual(outcome.stop._tag, "Completed")
      const finished = events.find((event) => event.event_type === "tool_execution_finished")
      assert.strictEqual(finished?.data["failure_kind"], "crashed")
    })
  )

  it.effect("an unknown tool is refused with the list of tools and the run goes on", () =>
    Effect.gen(function* () {
      const { context, events, outcome } = yield* play([call("subtract", {}), "sorry"])
      assert.deepStrictEqual([outcome.rejected, outcome.toolCalls], [1, 0])
      assert.include(context, "available tools: add, save")
      const legality = events.find((event) => event.event_type === "legality_checked")
      assert.deepInclude(legality?.data, { schema: "fail", scopes: "not_evaluated", pre: "not_evaluated" })
    })
  )

  it.effect("a malformed call is fed back, never shown as an answer", () =>
    Effect.gen(function* () {
      const { context, events, outcome } = yield* play(['<tool_call>\n{"name": "add", "argum\n</tool_call>', "sorry"])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "sorry" })
      assert.deepStrictEqual(shape(outcome), ["system", "user", "assistant:malformed", "feedback", "assistant:final"])
      assert.include(context, '"kind":"malformed_call"')
      assert.isTrue(events.some((event) => event.event_type === "feedback_committed"))
    })
  )

  it.effect("invalid arguments are refused with every problem at once", () =>
    Effect.gen(function* () {
      const { context, outcome } = yield* play([call("add", { a: "x", c: 1 }), "sorry"])
      assert.strictEqual(outcome.rejected, 1)
      for (const part of ["expected number, got string", "missing required argument", "unknown field"]) {
        assert.include(context, part)
      }
    })
  )

  it.effect("an empty turn is not an answer", () =>
    Effect.gen(function* () {
      const { events, outcome } = yield* play(["", "ok"])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "ok" })
      assert.strictEqual(
        events.find((event) => event.event_type === "assistant_action_parsed")?.data["code"],
        "empty_turn"
      )
    })
  )
})

describe("policy", () => {
  it.effect("a tool that reaches outside is refused when nobody can be asked, and the model is told", () =>
    Effect.gen(function* () {
      const { context, events, outcome, performed } = yield* play([call("send", { to: "bob" }), "could not"])
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.deepStrictEqual(performed, [])
      assert.include(context, '"kind":"refused"')
      assert.strictEqual(events.find((event) => event.event_type === "approval_decided")?.data["decision"], "deny")
    })
  )

  it.effect("an approver that says yes lets it run", () =>
    Effect.gen(function* () {
      const { performed } = yield* play([call("send", { to: "bob" }), "done"]).pipe(
        Effect.provideService(Approval, allowAll)
      )
      assert.deepStrictEqual(performed, ['send:{"to":"bob"}'])
    })
  )

  it.effect("an approver decides tool by tool, and is shown what it decides about", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const gate: Approver = {
        name: "gate",
        decide: ({ arguments: args, digest, risk, tool }) => {
          asked.push(`${tool} ${risk} ${JSON.stringify(args)} ${digest.length}`)
          return Effect.succeed(args["to"] === "ann" ? "allow" : "deny")
        }
      }
      const turn = calls(["send", { to: "bob" }], ["send", { to: "ann" }], ["add", { a: 1, b: 1 }])
      const { outcome, performed } = yield* play([turn, "ok"]).pipe(Effect.provideService(Approval, gate))
      assert.deepStrictEqual(performed, ['send:{"to":"ann"}', 'add:{"a":1,"b":1}'])
      assert.deepStrictEqual(asked, ['send external {"to":"bob"} 64', 'send external {"to":"ann"} 64'])
      assert.strictEqual(outcome.rejected, 1)
    })
  )

  it.effect("a run that waits for an approval says so and has executed nothing", () =>
    Effect.gen(function* () {
      const suspend = { name: "later", decide: () => Effect.succeed("suspend" as const) }
      const turn = calls(["add", { a: 1, b: 1 }], ["send", { to: "bob" }])
      const { outcome, performed, text } = yield* play([turn]).pipe(Effect.provideService(Approval, suspend))
      assert.strictEqual(outcome.stop._tag, "AwaitingApproval")
      assert.deepStrictEqual(performed, [])
      assert.strictEqual(types(text).at(-1), "run_awaiting_approval")
      assert.strictEqual(types(text).filter((type) => type === "call_skipped").length, 2)
    })
  )

  it.effect("a question to the user ends the run as needs_input", () =>
    Effect.gen(function* () {
      const { outcome, text } = yield* play([call("clarify", { question: "Which file?" })])
      assert.deepStrictEqual(outcome.stop, { _tag: "NeedsInput", question: "Which file?" })
      assert.strictEqual(types(text).at(-1), "run_needs_input")
    })
  )
})

describe("what fails around the model", () => {
  it.effect("an engine that fails in a turn rolls the turn back and the run says failed", () =>
    Effect.gen(function* () {
      const turn = { text: ["He", "llo"], fault: { before: 1, kind: "lost" as const } }
      const { context, outcome, text } = yield* play([turn])
      assert.deepInclude(outcome.stop, { _tag: "Failed", class: "engine" })
      assert.notInclude(context, "He")
      assert.deepStrictEqual(types(text).slice(-2), ["turn_rolled_back", "run_failed"])
    })
  )

  it.effect("a defect of the engine stays a defect, after the record was closed", () =>
    Effect.gen(function* () {
      const turn = { text: "Hello", fault: { before: 0, kind: "defect" as const } }
      const exit = yield* Effect.exit(play([turn]))
      assert.isTrue(Exit.hasDies(exit))
    })
  )

  it.effect("a script that runs out is an engine failure", () =>
    Effect.gen(function* () {
      const { outcome } = yield* play([add])
      assert.deepInclude(outcome.stop, { _tag: "Failed", class: "engine" })
    })
  )

  it.effect("artifacts published before one that could not be are on the record, and the call says what it did", () =>
    Effect.gen(function* () {
      const { events, outcome } = yield* play([call("save_two", {}), "done"])
      assert.strictEqual(outcome.artifacts.length, 1)
      assert.strictEqual(events.filter((event) => event.event_type === "artifact_written").length, 1)
      const finished = events.find((event) => event.event_type === "tool_execution_finished")
      assert.deepInclude(finished?.data, { failure_kind: "execution_failed", effect: "present" })
    })
  )
})
