import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Approval, allowAll, denyAll } from "../../../src/effects/Policy.ts"
import { aspects, type Diff, diff } from "../../../src/effects/trace/TraceDiff.ts"
import { corrupt, data, drop } from "../../kit/corrupt.ts"
import { emberText, recordsOf, rekeyed, runOf } from "../../kit/records.ts"
import { type KitOptions, play } from "../../kit/run.ts"
import { call, calls } from "../../kit/script.ts"
import { good } from "../../kit/traces.ts"

const add = (a: number) => call("add", { a, b: 1 })

const textOf = (turns: Parameters<typeof play>[0], options: KitOptions = {}) =>
  Effect.map(play(turns, options), ({ text }) => text)

const between = (a: string, b: string): Diff => diff(runOf(a), runOf(b))

const unlike = ({ aspects: found }: Diff) => aspects.filter((aspect) => found[aspect] !== "same")

describe("the difference between two runs", () => {
  for (const name of Object.keys(good) as ReadonlyArray<keyof typeof good>) {
    it.effect(`is none between a run and itself: ${name}`, () =>
      Effect.gen(function* () {
        const text = yield* good[name]
        const found = between(text, text)
        assert.deepStrictEqual([found.verdict, found.findings, found.divergence], ["same", [], undefined])
      })
    )
  }

  it.effect("is none between two runs of the same work, whatever they are called and however long they took", () =>
    Effect.gen(function* () {
      const text = yield* textOf([add(1), "done"])
      const later = text.replaceAll('"run-1"', '"run-2"').replaceAll('"duration_ms":0', '"duration_ms":17.5')
      assert.notStrictEqual(later, text)
      assert.strictEqual(between(text, later).verdict, "same")
    })
  )

  it.effect("begins where the model wrote something else, and says so", () =>
    Effect.gen(function* () {
      const found = between(yield* textOf([add(1), "It is 2."]), yield* textOf([add(1), "It is two."]))
      assert.strictEqual(found.verdict, "different")
      assert.strictEqual(found.divergence?.a?.event_type, "model_call_finished")
      assert.include(found.divergence?.why, "turn 2")
      assert.include(unlike(found), "answers")
      assert.notInclude(unlike(found), "results")
      assert.notInclude(unlike(found), "skeleton")
    })
  )

  it.effect(
    "names other arguments by their place, also of fields that are called like the ones that do not count",
    () =>
      Effect.gen(function* () {
        const text = yield* textOf([add(1), "ok"])
        const keyed = (key: string) =>
          corrupt(text, (lines) => void (data(lines, "tool_call_validated")["arguments"] = { key, seed: 1 }))
        const found = between(keyed("price"), keyed("prize"))
        assert.deepStrictEqual(unlike(found), ["arguments"])
        assert.strictEqual(found.findings[0]?.path, "0.0.key")
        assert.strictEqual(found.divergence?.path, "data.arguments.key")
        assert.strictEqual(found.divergence?.why, "add was called with other arguments in turn 1")
      })
  )

  it.effect("shows results with their digests", () =>
    Effect.gen(function* () {
      const text = yield* textOf([add(1), "ok"])
      const other = corrupt(text, (lines) => void (data(lines, "tool_execution_finished")["payload"] = 3))
      const found = between(text, other)
      assert.deepStrictEqual(unlike(found), ["results"])
      assert.hasAllKeys(found.findings[0]?.a, ["sha256", "value"])
      assert.strictEqual(found.divergence?.why, "add came to something else")
    })
  )

  it.effect("sees artifacts by their hashes, also without content", () =>
    Effect.gen(function* () {
      const save = (content: string) => [call("save", { name: "a.txt", content }), "saved"]
      const [a, b] = [
        yield* textOf(save("hi"), { trace: { content: false } }),
        rekeyed(yield* textOf(save("ho"), { trace: { content: false } }))
      ]
      const found = between(a, b)
      assert.strictEqual(found.aspects.artifacts, "different")
      assert.isTrue(found.findings.some(({ aspect, path }) => aspect === "artifacts" && path === "[0].sha256"))
    })
  )

  it.effect("compares lengths where content is off, and says that digests under different keys tell nothing", () =>
    Effect.gen(function* () {
      const off = { trace: { content: false } }
      const text = yield* textOf([add(1), "It is 2."], off)
      const equal = between(text, rekeyed(yield* textOf([add(1), "It is 3."], off)))
      assert.strictEqual(equal.verdict, "undetermined")
      assert.strictEqual(equal.aspects.answers, "undetermined")
      assert.isTrue(equal.notes.some((note) => note.includes("different keys")))
      const longer = between(text, rekeyed(yield* textOf([add(1), "It is 22."], off)))
      assert.strictEqual(longer.aspects.answers, "different")
    })
  )

  it.effect("does not take a stranger's digest for the same run's", () =>
    Effect.gen(function* () {
      const text = yield* good["one tool, no content"]
      const found = between(text, rekeyed(text))
      assert.strictEqual(found.verdict, "undetermined")
      assert.isEmpty(found.findings.filter(({ comparison }) => comparison === "different"))
    })
  )

  it.effect("reports a strict prefix as one", () =>
    Effect.gen(function* () {
      const text = yield* textOf([add(1), "done"])
      const begun = text.split("\n").slice(0, 9).join("\n")
      const found = between(text, begun)
      assert.strictEqual(found.prefix, "b")
      assert.strictEqual(found.divergence?.at, 9)
      assert.include(found.divergence?.why, "the record of B ends")
      assert.strictEqual(found.aspects.skeleton, "different")
      assert.strictEqual(between(begun, text).prefix, "a")
      assert.isTrue(found.notes.some((note) => note.startsWith("B has no terminal event")))
    })
  )

  it.effect("finds a call more, another decision and another end", () =>
    Effect.gen(function* () {
      const two = yield* textOf([calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 1 }]), "ok"])
      const fewer = between(two, yield* textOf([add(1), "ok"]))
      assert.isTrue(
        fewer.findings.some(({ aspect, b, path }) => aspect === "calls" && path === "0.1" && b === undefined)
      )
      const send = textOf([call("send", { to: "bob" }), "ok"])
      const decided = between(
        yield* Effect.provideService(send, Approval, allowAll),
        yield* Effect.provideService(send, Approval, denyAll)
      )
      assert.isTrue(decided.findings.some(({ path }) => path === "0.0.decision"))
      const ended = between(yield* textOf([add(1), "ok"]), yield* textOf([add(1), "ok"], { limits: { modelTurns: 1 } }))
      assert.isTrue(ended.findings.some(({ aspect, path }) => aspect === "stop" && path === "event"))
      assert.isTrue(ended.findings.some(({ aspect, path }) => aspect === "limits" && path === "modelTurns"))
    })
  )

  it.effect("compares what runs were made with: model, codec, tools by hash, sampling, system", () =>
    Effect.gen(function* () {
      const text = yield* textOf(["hi"])
      const other = yield* textOf(["hi"], { sampling: { temperature: 1, topK: 40, topP: 0.9, seed: 3 } })
      const changed = corrupt(other, (lines) => {
        const provenance = data(lines, "provenance")
        ;(provenance["tools"] as Array<{ hash: string }>)[0]!.hash = "0".repeat(64)
        provenance["codec"] = "other"
        ;(provenance["model"] as Record<string, unknown>)["name"] = "other"
      })
      const found = between(text, changed)
      assert.deepStrictEqual(unlike(found), ["provenance"])
      assert.includeMembers(
        found.findings.map(({ path }) => path),
        ["sampling.seed", "sampling.temperature", "codec", "model.name", "tools.add.hash"]
      )
      assert.isUndefined(found.divergence, "they did the same nevertheless")
    })
  )

  it.effect("is seen whatever event is taken out", () =>
    Effect.gen(function* () {
      const text = yield* good["two calls"]
      const kinds = new Set(recordsOf(text).map((record) => record.event_type))
      for (const kind of kinds) {
        assert.strictEqual(
          between(
            text,
            corrupt(text, (lines) => drop(lines, kind))
          ).verdict,
          "different",
          kind
        )
      }
    })
  )

  it.effect("between the two schemas is sought in what both record", () =>
    Effect.gen(function* () {
      assert.strictEqual(between(emberText, emberText).verdict, "same")
      const other = emberText.replaceAll("6*7", "6*8")
      const found = between(emberText, other)
      assert.deepStrictEqual(unlike(found), ["turns", "arguments"])
      const mixed = between(emberText, yield* textOf([add(1), "The answer is 42."]))
      assert.isTrue(mixed.notes.some((note) => note.includes("different schemas")))
      assert.strictEqual(mixed.aspects.skeleton, "same")
      assert.strictEqual(mixed.aspects.answers, "same")
      assert.strictEqual(mixed.aspects.calls, "different")
    })
  )
})
