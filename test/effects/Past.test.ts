import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { fold } from "../../src/effects/Past.ts"
import { denyAll, suspendAll } from "../../src/effects/Policy.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { contextOf } from "../kit/contractTraces.ts"
import { recordsOf } from "../kit/records.ts"
import { call, calls } from "../kit/script.ts"

const pay = call("pay", { to: "ann" })

/** Turns that an excerpt of a trace has kept. */
const kept = (text: string): number =>
  recordsOf(text).filter(
    ({ data, event_type }) => event_type === "session_state_changed" && String(data["role"]).startsWith("assistant_")
  ).length

type Case = readonly [name: string, turns: ReadonlyArray<string>, options: Parameters<typeof contextOf>[1]]

const refusedInOneWayOrAnother: ReadonlyArray<Case> = [
  ["by its precondition", [pay, "closed"], { world: { ready: [false] } }],
  ["by the governor", [call("order", { to: "x", worth: 9 }), "too dear"], {}],
  ["by a person", [pay, pay, "no"], { approver: denyAll }],
  ["for a dry run", [calls(["ask", { to: "x" }], ["pay", { to: "ann" }]), "done"], { gates: { dryRun: true } }]
]

describe("a call that was refused", () => {
  for (const [name, turns, options] of refusedInOneWayOrAnother) {
    it.effect(`${name} is answered in the same bytes, wherever the run is resumed`, () =>
      Effect.gen(function* () {
        const whole = yield* contextOf(turns, options)
        const all = whole.text.trimEnd().split("\n")
        for (let cut = 2; cut < all.length; cut++) {
          const text = `${all.slice(0, cut).join("\n")}\n`
          const again = yield* contextOf(turns.slice(kept(text)), options, recordsOf(text))
          assert.strictEqual(again.context, whole.context, `cut at ${cut}`)
          assert.deepStrictEqual(validateText(again.text).violations, [], `cut at ${cut}`)
        }
      })
    )
  }

  it.effect("after it was let go on is answered too, with its hint", () =>
    Effect.gen(function* () {
      const { text } = yield* contextOf([pay, "closed"], { world: { ready: [true, false] } })
      const all = recordsOf(text)
      const at = all.findIndex(({ event_type }) => event_type === "tool_call_rejected")
      const past = Result.getOrThrow(fold([all.slice(0, at + 1)]))
      const told = all.find(({ event_type }) => event_type === "tool_result_committed")
      assert.strictEqual(JSON.stringify(past.answers.get("call-0-0")), told?.data["answer"])
      assert.include(String(told?.data["answer"]), "retry_hint")
    })
  )
})

describe("a run that stopped in the middle of a turn", () => {
  it.effect("because a decision was put off asks again about that call", () =>
    Effect.gen(function* () {
      const turn = calls(["order", { to: "x" }], ["pay", { to: "ann" }], ["ask", { to: "y" }])
      const first = yield* contextOf([turn], { approver: suspendAll })
      assert.strictEqual(first.stop._tag, "AwaitingApproval")
      const second = yield* contextOf(["done"], {}, recordsOf(first.text))
      assert.strictEqual(second.stop._tag, "Completed")
      assert.deepStrictEqual(validateText(second.text).violations, [])
      const asked = recordsOf(second.text).filter(({ event_type }) => event_type === "approval_requested")
      assert.deepStrictEqual(
        asked.map(({ data }) => data["call"]),
        ["call-0-1"]
      )
    })
  )

  it.effect("inside of a retry has one execution behind it and no answer to its call", () =>
    Effect.gen(function* () {
      const { text } = yield* contextOf([pay, "done"], { world: { acting: ["lost", "lost", "done"] } })
      const all = recordsOf(text)
      const at = all.findLastIndex(({ event_type }) => event_type === "retry_scheduled")
      const past = Result.getOrThrow(fold([all.slice(0, at + 1)]))
      assert.strictEqual(past.toolCalls, 1)
      assert.strictEqual(past.answers.size, 0)
      assert.deepStrictEqual(past.openTurn, { turn: 0 })
    })
  )
})
