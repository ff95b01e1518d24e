import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { explain, findCall } from "../../../src/effects/trace/TraceExplain.ts"
import { type ContractedName, contracted } from "../../kit/contractTraces.ts"
import { emberText, runOf } from "../../kit/records.ts"
import { type GoodName, good } from "../../kit/traces.ts"

const explained = (text: string, named = "1") => {
  const run = runOf(text)
  return explain(run, findCall(run, named)!)
}

describe("an explained call", () => {
  it.effect("goes from the text the model wrote to what the model was told, in order", () =>
    Effect.gen(function* () {
      const { conclusion, fate, steps, tool } = explained(yield* good.approved)
      assert.deepStrictEqual(
        steps.map(({ stage }) => stage),
        [
          "proposal",
          "legality",
          "approval",
          "approval",
          "arguments",
          "ledger",
          "execution",
          "execution",
          "ledger",
          "told"
        ]
      )
      const seqs = steps.map(({ seq }) => seq)
      assert.deepStrictEqual(
        [...seqs].sort((a, b) => a - b),
        seqs
      )
      assert.include(steps[0]?.text, '"name":"send"')
      assert.include(steps[4]?.text, '{"to":"bob"}')
      assert.include(steps[2]?.text, "it can be undone; success to be judged by self: its own answer")
      assert.strictEqual(steps[3]?.text, "allow by allow-all")
      assert.include(steps.at(-1)?.text, '{"ok":true,"result":"sent"}')
      assert.deepStrictEqual([tool, fate], ["send", "succeeded"])
      assert.strictEqual(conclusion, "It ran and succeeded; the model was told of its success.")
    })
  )

  const fates: ReadonlyArray<readonly [name: GoodName, call: string, fate: string, said: RegExp]> = [
    ["denied", "1", "denied", /deny by nobody/],
    ["unknown tool", "1", "rejected", /unknown_tool: .*subtract/],
    ["invalid arguments", "1", "rejected", /invalid_arguments: .*expected number/],
    ["failing tool", "1", "failed", /failed after \S+ ms \(execution_failed, postcondition, execution\).*it broke/],
    ["artifact", "1", "succeeded", /a\.txt, 2 bytes, SHA-256 8f4343/],
    ["suspended", "2", "undecided", /suspend by suspend/],
    ["needs input", "1", "asks the user", /Which file\?/],
    ["tool calls in a turn", "3", "skipped", /nothing: the run stopped before it was this call's turn/],
    ["late outcome", "1", "failed", /after it was given up it succeeded; the model was never told/],
    ["cancelled in an external tool", "1", "failed", /nobody knows what it changed/],
    ["one tool, no content", "1", "succeeded", /\(\d+ bytes, not recorded\)/]
  ]
  for (const [name, call, fate, said] of fates) {
    it.effect(`says why: ${name}`, () =>
      Effect.gen(function* () {
        const found = explained(yield* good[name], call)
        assert.strictEqual(found.fate, fate)
        assert.match(found.steps.map(({ text }) => text).join("\n"), said)
      })
    )
  }

  const gated: ReadonlyArray<
    readonly [name: ContractedName, fate: string, said: ReadonlyArray<string>, ended: string]
  > = [
    [
      "not worth it",
      "rejected",
      [
        "do_nothing is worth most by standard",
        "call-0-0: 10 - 1 x 9 - 2 x 2.25 = -3.5",
        "not_chosen: this call costs or risks more"
      ],
      "(authorization, raised by governor)"
    ],
    [
      "not ready",
      "rejected",
      ["precondition FAILED; blocked by pre", "the account is closed"],
      "(precondition, raised by precondition)"
    ],
    [
      "no longer ready",
      "rejected",
      ["looked at again after approval: FAILED"],
      "(precondition, raised by precondition)"
    ],
    [
      "retried by key",
      "succeeded",
      [
        "try 1 of 4 had no answer (timeout); another in 1000 ms",
        "try 3)",
        'settled as settled_ok, by probe: {"balance":1}'
      ],
      "It ran and succeeded"
    ],
    ["accepted, then done", "succeeded", ["its promise is looked for up to 1000 ms"], "It ran and succeeded"],
    [
      "lost and unclear",
      "failed",
      [
        "the effect is unclear",
        "settled as ambiguous",
        "left to a person",
        "try 1 at 0 ms: unavailable, effect unknown"
      ],
      "a person has to find out; the run stopped before the model was told."
    ]
  ]
  for (const [name, fate, said, ended] of gated) {
    it.effect(`tells what decided about it and what was done: ${name}`, () =>
      Effect.gen(function* () {
        const found = explained(yield* contracted[name])
        const text = found.steps.map((step) => step.text).join("\n")
        for (const part of said) assert.include(text, part)
        assert.strictEqual(found.fate, fate)
        assert.include(found.conclusion, ended)
      })
    )
  }

  it.effect("may be an attempt that never became a call", () =>
    Effect.gen(function* () {
      const { conclusion, fate, steps } = explained(yield* good.malformed)
      assert.strictEqual(fate, "malformed")
      assert.include(
        steps[1]?.text,
        "schema FAILED, scopes not looked at, precondition not looked at; blocked by schema"
      )
      assert.include(conclusion, "It never became a call")
    })
  )

  it.effect("is found by id and by place, and nothing else is", () =>
    Effect.gen(function* () {
      const run = runOf(yield* good["two calls"])
      assert.strictEqual(findCall(run, "call-0-1")?.id, "call-0-1")
      assert.strictEqual(findCall(run, "2")?.id, "call-0-1")
      for (const named of ["0", "3", "call-9-9", "", "1.5"]) assert.isUndefined(findCall(run, named), named)
    })
  )

  it("of an Ember trace has what is on record there", () => {
    const { conclusion, steps } = explained(emberText)
    assert.deepStrictEqual(
      steps.map(({ stage }) => stage),
      ["proposal", "arguments", "execution", "execution", "told"]
    )
    assert.include(steps[3]?.text, '{"value":42}')
    assert.strictEqual(conclusion, "It ran and succeeded; the model was told of its success.")
  })
})
