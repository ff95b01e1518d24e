import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import {
  type Metrics,
  MetricsCounter,
  type MetricsOptions,
  type Share
} from "../../../src/effects/trace/TraceMetrics.ts"
import { Lines } from "../../../src/effects/trace/TraceReader.ts"
import { oracle, Written, type WrittenEffect, type WrittenOptions } from "../../kit/metricTraces.ts"
import { emberText } from "../../kit/records.ts"
import { play } from "../../kit/run.ts"
import { call } from "../../kit/script.ts"
import { good, resumedRuns } from "../../kit/traces.ts"

/** Whole lines only, as the command reads them. */
const measured = (texts: ReadonlyArray<string>, options: MetricsOptions = {}): Metrics => {
  const counter = new MetricsCounter()
  for (const [at, text] of texts.entries()) {
    const feed = counter.feed(`${at}.jsonl`)
    const lines = new Lines(undefined, { sources: true })
    for (const item of [...lines.push(Buffer.from(text)), ...lines.end()]) {
      if (item._tag === "Event") feed.see(item.record, Number(item.source!.envelope["ts_epoch_ms"]))
    }
    feed.end()
  }
  return counter.measure(options)
}

const of = ({ count, of: all, rate }: Share) => [count, all, rate]

const run = (options?: WrittenOptions) => new Written("run-1", options)

const effects = (...all: ReadonlyArray<WrittenEffect>) => all.reduce((made, one) => made.effect(one), run()).end().text

const refused = (pre: "pass" | "fail", scopes: "pass" | "fail") => {
  const by = scopes === "fail" ? ("scopes" as const) : ("pre" as const)
  const [kind, why] = scopes === "fail" ? ["unauthorized", "authorization"] : ["precondition_failed", "precondition"]
  return [{ pre, scopes, blocked_by: [by] }, kind!, { class: why as "authorization" | "precondition" }] as const
}

describe("violations", () => {
  it("6 of 200 attempts are 3 %", () => {
    const found = measured([oracle(6, 200).text])
    assert.deepStrictEqual(of(found.schemaViolations), [6, 200, 0.03])
    assert.deepStrictEqual(of(found.preconditionViolations), [0, 200, 0])
    assert.deepStrictEqual(of(found.authorizationRefusals), [0, 200, 0])
  })

  it("of preconditions and of authority are told apart, and every attempt counts once", () => {
    const text = run()
      .rejected(...refused("fail", "pass"))
      .rejected(...refused("pass", "fail"))
      .read()
      .read()
      .end().text
    const found = measured([text])
    assert.deepStrictEqual(of(found.preconditionViolations), [1, 4, 0.25])
    assert.deepStrictEqual(of(found.authorizationRefusals), [1, 4, 0.25])
    assert.deepStrictEqual(of(found.schemaViolations), [0, 4, 0])
    assert.deepStrictEqual(found.classes, { authorization: 1, precondition: 1 })
  })

  it("a precondition that fails only when it is looked at again is one of the same attempt", () => {
    const text = run().turn().checked("act")
    const again = { tool: "act", pre: "fail", after: "approval" } as const
    text.event("precondition_checked", "model-0", { call: text.call, ...again })
    text.event("precondition_checked", "model-0", { call: text.call, ...again })
    assert.deepStrictEqual(of(measured([text.text]).preconditionViolations), [1, 1, 1])
  })

  it("a malformed turn is one attempt, whether or not the attempt has a record of its own", () => {
    for (const checked of [true, false]) {
      const found = measured([run().malformed(checked).read().end().text])
      assert.deepStrictEqual(of(found.schemaViolations), [1, 2, 0.5])
      assert.deepStrictEqual(found.classes, { schema: 1 })
    }
  })

  it("a turn that calls a tool which does not exist is one, as is one an old trace has no class for", () => {
    const not = {
      schema: "not_evaluated",
      scopes: "not_evaluated",
      pre: "not_evaluated",
      cause: "unknown_tool"
    } as const
    assert.deepStrictEqual(of(measured([run().rejected(not, "unknown_tool").text]).schemaViolations), [1, 1, 1])
    assert.deepStrictEqual(measured([run().rejected({}, "refused").text]).classes, { authorization: 1 })
  })
})

describe("kept promises", () => {
  it("are what was settled so, of what was executed", () => {
    const found = measured([
      effects({}, { status: "settled_failed", ok: false, effect: "present" }, { status: "ambiguous", ok: false }, {})
    ])
    assert.deepStrictEqual(of(found.postconditionSuccess), [2, 4, 0.5])
    assert.deepStrictEqual(found.classes, { postcondition: 1, timeout: 1 })
  })

  it("100 requests that are accepted at once raise no metric of success", () => {
    const after = (one: WrittenEffect) => {
      const text = run().rejected(...refused("fail", "pass"))
      for (let n = 0; n < 100; n++) text.effect(one)
      return measured([text.end().text], { scores: new Map([["run-1", { with: 1, without: 0.5 }]]) })
    }
    for (const one of [
      { accepted: true, ok: undefined, status: undefined },
      // An adapter that lies: the promise was looked at, and nobody could tell.
      { accepted: true, ok: true, status: "ambiguous" },
      { accepted: true, ok: true, status: undefined },
      { accepted: true, ok: false, status: "ambiguous" }
    ] satisfies ReadonlyArray<WrittenEffect>) {
      const found = after(one)
      assert.deepStrictEqual(of(found.postconditionSuccess), [0, 100, 0])
      assert.strictEqual(found.progressAfterFailure.count, 0)
      assert.deepStrictEqual(of(found.readSuccess), [0, 0, undefined])
      assert.deepStrictEqual(of(found.duplicateEffects), [0, 0, undefined])
      assert.strictEqual(found.utility.perCall, 0.5 / 100)
    }
  })

  it("do not count where a trace says only what the tool said of itself", () => {
    const found = measured([effects({ outcome: "succeeded" }, { outcome: "failed", ok: false, effect: "none" })])
    assert.deepStrictEqual(of(found.postconditionSuccess), [0, 0, undefined])
    assert.deepStrictEqual([found.left.unjudged, of(found.duplicateEffects)], [2, [0, 1, 0]])
    assert.deepStrictEqual(of(found.rollbacks), [0, 0, undefined])
  })

  it("an effect that was stopped before it began was not executed, one without an end was", () => {
    const stopped = { ok: false, effect: "none", class: "cancelled" } as const
    assert.deepStrictEqual(of(measured([effects({ ...stopped, status: undefined })]).postconditionSuccess), [
      0,
      0,
      undefined
    ])
    assert.deepStrictEqual(
      of(measured([effects({ ok: undefined, status: undefined })]).postconditionSuccess),
      [0, 1, 0]
    )
    const unready = { ok: false, effect: "none", class: "precondition", stage: "precondition" } as const
    const found = measured([effects({ ...unready, status: "settled_failed" })])
    assert.deepStrictEqual(of(found.postconditionSuccess), [0, 0, undefined])
  })

  it("what the ledger only remembered was not executed", () => {
    const text = run().turn().checked("act", { pre: "not_evaluated", cause: "superseded_by_ledger" })
    const key = { key: "a".repeat(64), outcome: "succeeded", status: "settled_ok" } as const
    text.event("effect_settled", "model-0", { call: text.call, tool: "act", ...key, replayed: true })
    const found = measured([text.end().text])
    assert.deepStrictEqual(of(found.postconditionSuccess), [0, 0, undefined])
    assert.deepStrictEqual(of(found.duplicateEffects), [0, 0, undefined])
  })

  it("are kept too if the ledger of a resumed run says so of what an earlier part did", () => {
    const first = run().effect({ ok: undefined, status: undefined, key: "a" })
    const resumed = { from_run: "run-1", root_run: "run-1", from_seq: 9, next_turn: 1, calls: [] }
    const known = { call: "call-0-0", tool: "act", key: "a".repeat(64), replayed: true } as const
    for (const [status, count] of [
      ["settled_ok", 1],
      ["settled_failed", 0]
    ] as const) {
      const second = new Written("run-1-r2").event("run_resumed", "run", resumed)
      second.event("effect_settled", "model-0", { ...known, outcome: "succeeded", status })
      const found = measured([first.text, second.text])
      assert.deepStrictEqual([found.runs, of(found.postconditionSuccess)], [1, [count, 1, count]])
    }
  })

  it("what was given up to a person is a failed call, whether or not it ran here", () => {
    const text = run().turn().checked("act")
    text.event("effect_escalated", "model-0", { call: text.call, tool: "act", key: "a".repeat(64), attempts: [] })
    const found = measured([text.text])
    assert.deepStrictEqual([found.classes, of(found.progressAfterFailure)], [{ timeout: 1 }, [0, 1, 0]])
  })

  it("reads have a row of their own", () => {
    assert.deepStrictEqual(of(measured([run().read().read(false).read().read().end().text]).readSuccess), [3, 4, 0.75])
  })
})

describe("duplicates", () => {
  it("are the effects beyond the first of their key", () => {
    const found = measured([effects({ key: "a" }, { key: "a" }, { key: "a" }, { key: "b" })])
    assert.deepStrictEqual(of(found.duplicateEffects), [2, 4, 0.5])
  })

  it("are no repeats whose first try left nothing, nor ones the other side takes for the same", () => {
    const repeated = measured([effects({ lost: 2 })])
    assert.deepStrictEqual([of(repeated.duplicateEffects), repeated.left.unclear], [[0, 1, 0], 0])
    const twice = measured([effects({ key: "a", ok: false, effect: "none", status: "settled_failed" }, { key: "a" })])
    assert.deepStrictEqual(of(twice.duplicateEffects), [0, 1, 0])
  })

  it("nobody knows whether a lost try was one where no key is honoured: it is named, not counted", () => {
    const { duplicateEffects, left } = measured([effects({ lost: 1, mode: "observe" })])
    assert.deepStrictEqual([of(duplicateEffects), left.unclear, left.possibleDuplicates], [[0, 1, 0], 1, 1])
  })

  it("a lost try that turns out to have had its effect was one, and one that did not was none", () => {
    for (const [found, expected] of [
      ["present", [1, 2, 0.5]],
      ["absent", [0, 1, 0]]
    ] as const) {
      const text = run().turn().checked("act")
      const about = { call: text.call, tool: "act", key: "a".repeat(64) }
      const lost = { failure_kind: "timed_out", effect: "unknown", class: "timeout" } as const
      text.event("effect_intent", "model-0", { ...about, mode: "observe", attempt: 1 }).started("act")
      text.finished("act", false, lost).event("effect_probed", "model-0", { ...about, found })
      text
        .event("effect_intent", "model-0", { ...about, mode: "observe", attempt: 2 })
        .started("act")
        .finished("act", true)
      text.event("effect_settled", "model-0", { ...about, outcome: "succeeded", replayed: false, status: "settled_ok" })
      assert.deepStrictEqual(of(measured([text.text]).duplicateEffects), [...expected])
    }
  })

  it("a late answer to a lost try says that it had its effect, and nothing of its promise", () => {
    const late = { tool: "act", ok: true, failure_kind: null } as const
    const text = run().effect({ lost: 1, mode: "observe" })
    text.event("late_outcome", "tool-0", { call: text.call, ...late })
    assert.deepStrictEqual(of(measured([text.text]).duplicateEffects), [1, 2, 0.5])
    const alone = run().effect({ ok: false, status: "ambiguous" })
    alone.event("late_outcome", "tool-0", { call: alone.call, ...late })
    const found = measured([alone.text])
    assert.deepStrictEqual([of(found.postconditionSuccess), found.left.unclear], [[0, 1, 0], 0])
  })

  it("are seen across runs with content, and without it only within each", () => {
    for (const [content, expected] of [
      [true, 1],
      [false, 0]
    ] as const) {
      const texts = ["run-1", "run-2"].map((id) => new Written(id, { content }).effect({ key: "invoice" }).end().text)
      const found = measured(texts)
      assert.deepStrictEqual([found.duplicateEffects.count, found.keyedByTrace], [expected, !content])
    }
  })
})

describe("rollbacks", () => {
  it("are compensations, of the effects that undo nothing themselves", () => {
    const found = measured([effects({}, {}, {}, {}, { compensates: "call-0-0" })])
    assert.deepStrictEqual(of(found.rollbacks), [1, 4, 0.25])
    assert.deepStrictEqual(of(found.postconditionSuccess), [5, 5, 1])
  })

  it("of the world are not those of a speculative turn", () => {
    const text = run()
      .effect()
      .turn()
      .event("turn_rolled_back", "model-1", { turn: 1, reason: "cancelled", committed_len: 0 })
    const found = measured([text.text])
    assert.deepStrictEqual(
      [of(found.rollbacks), of(found.turnsRolledBack)],
      [
        [0, 1, 0],
        [1, 2, 0.5]
      ]
    )
  })
})

describe("progress after a failed call", () => {
  it("is a later effect that was settled as kept, or a later read that succeeded", () => {
    const fail = () => run().rejected(...refused("fail", "pass"))
    assert.deepStrictEqual(of(measured([fail().effect().end().text]).progressAfterFailure), [1, 1, 1])
    assert.deepStrictEqual(of(measured([fail().read().end().text]).progressAfterFailure), [1, 1, 1])
    const none = fail().effect({ ok: false, status: "ambiguous" }).read(false).end().text
    assert.deepStrictEqual(of(measured([none]).progressAfterFailure), [0, 3, 0])
    assert.deepStrictEqual(of(measured([run().read().malformed().end().text]).progressAfterFailure), [0, 1, 0])
  })

  it("is not told from an old effect, whose promise nobody looked at", () => {
    const found = measured([run().read(false).effect({ outcome: "succeeded" }).end().text])
    assert.deepStrictEqual([of(found.progressAfterFailure), found.left.undecided], [[0, 0, undefined], 1])
  })

  it("a call that came to something at its second try did not fail, and one the run stopped did not either", () => {
    assert.strictEqual(measured([effects({ lost: 1 })]).progressAfterFailure.of, 0)
    const put = { schema: "not_evaluated", scopes: "not_evaluated", pre: "not_evaluated" } as const
    const found = measured([
      run()
        .rejected({ ...put, cause: "single_call_policy" }, "not_executed")
        .end().text
    ])
    assert.deepStrictEqual([found.progressAfterFailure.of, found.classes], [0, { cancelled: 1 }])
  })
})

describe("gain per call", () => {
  const scores = new Map([["run-1", { with: 0.9, without: 0.5 }]])
  const two = run().read().read().end().text

  it("is what was scored with tools less what was without, per executed call, and states the budget", () => {
    const { utility } = measured([two], { scores })
    assert.deepInclude(utility, { calls: 2, scored: 1, reason: undefined })
    assert.closeTo(utility.perCall!, 0.2, 1e-12)
    assert.deepStrictEqual(utility.budget, { wallMillis: 60_000, modelTurns: 8, outputTokens: 512, thinkTokens: null })
  })

  it("is not there without scores, without calls, without a fixed budget, or for a mix of budgets", () => {
    const why = (texts: ReadonlyArray<string>, given: MetricsOptions) => {
      const { perCall, reason } = measured(texts, given).utility
      assert.isUndefined(perCall)
      return reason
    }
    assert.include(why([two], {}), "no scores were given")
    assert.include(
      why([two], { scores: new Map([["other", { with: 1, without: 0 }]]) }),
      "none of the runs has a score"
    )
    assert.include(why([run().end().text], { scores }), "no call was executed")
    const free = { modelTurns: 8, outputTokens: 512, wallMillis: null }
    assert.include(why([run({ limits: free }).read().text], { scores }), "had no limit of time")
    const other = new Written("run-2", { limits: { modelTurns: 4, outputTokens: 512, wallMillis: 60_000 } }).read().text
    const both = new Map([...scores, ["run-2", { with: 1, without: 0 }]])
    assert.include(why([two, other], { scores: both }), "2 different budgets")
  })
})

describe("the drift alarm", () => {
  const bad = (text: Written) => text.malformed()
  const log = (pattern: string, id = "run-1", began = 1_000) => {
    const text = new Written(id, { began })
    for (const one of pattern) one === "x" ? bad(text) : text.read()
    return text.text
  }

  it("trips where the rate of a full window is above the threshold, and says where", () => {
    const { drift } = measured([log("......x.xx......")], { drift: { window: 5, alarm: 0.4 } })
    assert.deepInclude(drift, { attempts: 16, windows: 12, above: 2 })
    assert.deepInclude(drift!.tripped, { violations: 3, rate: 0.6 })
    assert.deepInclude(drift!.tripped!.to, { attempt: 10, runId: "run-1", call: "call-9-0", file: "0.jsonl" })
    assert.strictEqual(drift!.last!.violations, 0)
  })

  it("does not trip at the threshold, nor before there is a whole window", () => {
    assert.isUndefined(measured([log("..xx.")], { drift: { window: 5, alarm: 0.4 } }).drift?.tripped)
    const short = measured([log("xxxx")], { drift: { window: 5, alarm: 0 } }).drift
    assert.deepStrictEqual([short?.windows, short?.tripped], [0, undefined])
  })

  it("goes along runs in the order of time, not of names", () => {
    const texts = [log("..xx", "b", 9_000), log("xx..", "a", 1_000)]
    const { drift } = measured(texts, { drift: { window: 4, alarm: 0.5 } })
    assert.isUndefined(drift?.tripped)
    assert.deepStrictEqual(drift?.worst?.from.runId, "a")
    const climbing = measured(texts.toReversed(), { drift: { window: 2, alarm: 0.9 } }).drift
    assert.strictEqual(climbing?.tripped?.to.attempt, 2)
  })

  it("counts every window as a recount does", () => {
    const pattern = fc.string({ unit: fc.constantFrom("x", "."), maxLength: 40 })
    const windows = fc.integer({ min: 1, max: 12 })
    fc.assert(
      fc.property(pattern, windows, fc.integer({ min: 0, max: 10 }), (text, window, tenths) => {
        const alarm = tenths / 10
        const rates = Array.from(
          { length: Math.max(0, text.length - window + 1) },
          (_, at) => [...text.slice(at, at + window)].filter((one) => one === "x").length / window
        )
        const { drift } = measured([log(text)], { drift: { window, alarm } })
        const first = rates.findIndex((rate) => rate > alarm)
        assert.strictEqual(drift!.windows, rates.length)
        assert.strictEqual(drift!.above, rates.filter((rate) => rate > alarm).length)
        assert.strictEqual(drift!.tripped?.from.attempt, first < 0 ? undefined : first + 1)
        assert.strictEqual(drift!.worst?.rate, rates.length === 0 ? undefined : Math.max(...rates))
      }),
      { numRuns: 60 }
    )
  })
})

describe("any trace", () => {
  const all = ["schemaViolations", "preconditionViolations", "authorizationRefusals", "postconditionSuccess"] as const
  const more = ["readSuccess", "duplicateEffects", "rollbacks", "turnsRolledBack", "progressAfterFailure"] as const
  const shares = [...all, ...more]

  it("without an attempt has no rates, neither 0 nor all", () => {
    for (const texts of [[], [run().text], [run().end().text]]) {
      const found = measured(texts)
      for (const name of shares) assert.deepStrictEqual(of(found[name]), [0, 0, undefined], name)
      assert.isUndefined(found.utility.perCall)
    }
  })

  it.effect("gives the same numbers twice, and shares never above their whole", () =>
    Effect.gen(function* () {
      const written = [effects({ key: "a" }, { key: "a" }, { lost: 1, mode: "none" }), oracle(6, 200).text, emberText]
      const texts = [...(yield* Effect.forEach(Object.values(good), (trace) => trace)), ...written]
      for (const text of texts) {
        const found = measured([text])
        assert.deepStrictEqual(measured([text]), found)
        for (const name of shares) assert.isAtMost(found[name].count, found[name].of, name)
      }
    })
  )

  it("cut anywhere counts the whole lines and never breaks", () => {
    const text = effects({ lost: 1 }, { status: "settled_failed", ok: false }, { key: "a" }, { key: "a" })
    let before = 0
    for (let end = 0; end <= text.length; end += 37) {
      const found = measured([text.slice(0, end)])
      assert.isAtLeast(found.schemaViolations.of, before)
      before = found.schemaViolations.of
      for (const name of shares) assert.isAtMost(found[name].count, found[name].of, name)
    }
  })

  it("that is forged gives numbers, not errors", () => {
    const known = [
      "run_started",
      "provenance",
      "run_resumed",
      "assistant_action_parsed",
      "legality_checked",
      "precondition_checked",
      "tool_call_validated",
      "tool_call_rejected",
      "effect_intent",
      "tool_execution_started",
      "tool_execution_finished",
      "effect_settled",
      "effect_probed",
      "effect_escalated",
      "retry_scheduled",
      "late_outcome",
      "turn_rolled_back",
      "run_completed"
    ]
    const names = ["call", "key", "ok", "status", "class", "kind", "outcome", "replayed", "effect", "action", "limits"]
    const field = fc.constantFrom(...names, "schema", "pre", "scopes", "blocked_by", "cause", "compensates", "root_run")
    const value = fc.oneof(
      fc.constantFrom("a", "__proto__", "constructor", "fail", "settled_ok", "present", "malformed", "schema", "read"),
      fc.jsonValue()
    )
    const event = fc.record({
      schema: fc.constantFrom("writ.trace.v1", "ember.agent.trace.v1"),
      run_id: fc.constantFrom("a", "__proto__", "b"),
      seq: fc.nat(),
      event_type: fc.constantFrom(...known),
      t_ms: fc.double({ noNaN: true, noDefaultInfinity: true }),
      step: fc.constantFrom("model-0", "tool-0", "__proto__"),
      data: fc.dictionary(field, value)
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const text = events.map((one) => `${JSON.stringify(one)}\n`).join("")
        const scores = new Map([["a", { with: 1, without: 0 }]])
        const found = measured([text], { drift: { window: 2, alarm: 0.1 }, scores })
        const ratios = shares.filter((name) => name !== "rollbacks" && name !== "turnsRolledBack")
        for (const name of ratios) assert.isAtMost(found[name].count, found[name].of, name)
      }),
      { numRuns: 300 }
    )
  })

  it("of Ember says what Ember recorded, and nothing of effects", () => {
    const found = measured([emberText])
    assert.deepStrictEqual(
      [of(found.schemaViolations), of(found.readSuccess)],
      [
        [0, 1, 0],
        [1, 1, 1]
      ]
    )
    assert.deepStrictEqual(of(found.postconditionSuccess), [0, 0, undefined])
    const line = (seq: number, event_type: string, data: object) =>
      `${JSON.stringify({ schema: "ember.agent.trace.v1", run_id: "e", seq, event_type, t_ms: seq, step: "model-0", data })}\n`
    const malformed = [
      line(0, "assistant_action_parsed", { action: "malformed_tool_call", reason: "r" }),
      line(1, "tool_call_rejected", { kind: "malformed_tool_call", reason: "r" })
    ]
    assert.deepStrictEqual(of(measured([malformed.join("")]).schemaViolations), [1, 1, 1])
  })
})

describe("runs of the loop", () => {
  it.effect("reads, rejections and malformed turns are counted as they were emitted", () =>
    Effect.gen(function* () {
      const bad = "<tool_call>\n{\n</tool_call>"
      const turns = [
        call("add", { a: "x" }),
        bad,
        call("subtract", {}),
        call("broken", { how: "error" }),
        call("add", { a: 1, b: 2 }),
        "It is 3."
      ]
      for (const content of [true, false]) {
        const { text } = yield* play(turns, { trace: { content } })
        const found = measured([text])
        assert.deepStrictEqual(of(found.schemaViolations), [3, 5, 0.6])
        assert.deepStrictEqual(of(found.readSuccess), [1, 2, 0.5])
        assert.deepStrictEqual(of(found.progressAfterFailure), [4, 4, 1])
        assert.deepStrictEqual(found.classes, { schema: 3, postcondition: 1 })
      }
    })
  )

  it.effect("effects and refusals are too", () =>
    Effect.gen(function* () {
      const approved = measured([yield* good.approved])
      assert.deepStrictEqual(of(approved.postconditionSuccess), [1, 1, 1])
      assert.deepStrictEqual(of(approved.duplicateEffects), [0, 1, 0])
      const denied = measured([yield* good.denied])
      assert.deepStrictEqual(of(denied.authorizationRefusals), [1, 1, 1])
      assert.deepStrictEqual(of(denied.postconditionSuccess), [0, 0, undefined])
    })
  )

  it.effect("the parts of a resumed run are one run, in which an effect that was asked about twice happened once", () =>
    Effect.gen(function* () {
      const { first, second } = yield* resumedRuns["resumed in a turn with one call done"]
      const [one, both] = [measured([first]), measured([first, second])]
      assert.deepStrictEqual([both.runs, both.parts, both.ended], [1, 2, 2])
      assert.strictEqual(both.schemaViolations.of, one.schemaViolations.of)
      assert.strictEqual(both.duplicateEffects.count, 0)
    })
  )
})
