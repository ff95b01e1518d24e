import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { argumentsDigest, keyOf } from "../../src/actors/EffectLedgerKey.ts"
import { layerInline } from "../../src/actors/ToolPool.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { resume } from "../../src/effects/Resume.ts"
import { replacements } from "../../src/effects/trace/Concealed.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { replayCalls } from "../../src/effects/trace/ReplayCalls.ts"
import { ofText } from "../../src/effects/trace/report/HtmlReport.ts"
import { diff } from "../../src/effects/trace/TraceDiff.ts"
import { spansOf } from "../../src/effects/trace/TraceSpans.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { canonical } from "../../src/tools/JsonText.ts"
import { canary, digests, places } from "../kit/canaries.ts"
import { derived, leaks, outputs, recordsOf } from "../kit/canaryRuns.ts"
import { runOf } from "../kit/records.ts"
import { play } from "../kit/run.ts"
import { call } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const secret = "Sq9-4711"
const rule = { name: "secret", pattern: "Sq9-\\d+" }
const trace = { content: true, redact: [rule] }

/** Every canary, and what is left of one whose last letter was changed. */
const canaries = { name: "canary", pattern: "Kq7[a-z]+Zw9(?:é|e)?" }

const edited = (text: string, type: string, edit: (line: Record<string, unknown>) => void) => {
  const all = text.split("\n").filter((line) => line !== "")
  let prev = "0".repeat(64)
  let done = false
  const lines = all.map((line) => {
    const value = JSON.parse(line) as Record<string, unknown>
    if (!done && value["event_type"] === type && value["redacted"] !== undefined) {
      done = true
      edit(value)
    }
    const written = JSON.stringify({ ...value, prev })
    prev = hash("sha256", written)
    return written
  })
  assert.isTrue(done, `${type} is redacted`)
  return `${lines.join("\n")}\n`
}

const rulesBroken = (text: string) => [...new Set(validateText(text).violations.map(({ invariant }) => invariant))]

describe("a trace under redaction rules", () => {
  for (const content of [true, false]) {
    it.effect(
      `holds no secret ${content ? "with" : "without"} content, in no form, and neither does what is made of it`,
      () =>
        Effect.gen(function* () {
          const { logged, traces } = yield* outputs({ content, redact: [canaries] })
          assert.deepStrictEqual(leaks(traces.join("\n")), [])
          assert.deepStrictEqual(leaks(logged.join("\n")), [])
          for (const text of traces) {
            assert.deepStrictEqual(validateText(text).violations, [])
            const made = [
              derived(text),
              ofText(text).pieces.join(""),
              JSON.stringify(spansOf(runOf(text), { epochMillis: 0 }))
            ]
            assert.deepStrictEqual(leaks(made.join("\n")), [])
            const replaced = recordsOf(text).reduce((sum, record) => sum + replacements(record), 0)
            assert.strictEqual(replaced > 0, content)
          }
        })
    )
  }

  it.effect("holds no digest from which what was replaced could be guessed", () =>
    Effect.gen(function* () {
      const text = (yield* outputs({ content: true, redact: [canaries] })).traces.join("\n")
      const to = canary("approval")
      const key = keyOf({
        runId: "run-1",
        step: "model-0",
        ordinal: 0,
        tool: "send",
        argumentsDigest: argumentsDigest(canonical({ to }))
      })
      const guesses = [
        ...places.filter((place) => place !== "artifactbytes").flatMap((place) => digests(canary(place))),
        ...digests({ to }),
        hash("sha256", canonical(["send", { to }])),
        key
      ]
      assert.deepStrictEqual(
        guesses.filter((guess) => text.includes(guess)),
        []
      )
      const plain = (yield* outputs({ content: true })).traces.join("\n")
      assert.include(plain, key, "the search can find")
      assert.include(plain, hash("sha256", canonical(["send", { to }])))
    })
  )

  it.effect("says what was replaced, where and how often, with the length and keyed digest of what stood there", () =>
    Effect.gen(function* () {
      const task = `use ${secret} and Sq9-1`
      const { context, text } = yield* play([secret], { task, trace })
      const [started] = recordsOf(text)
      assert.strictEqual(started?.data["task"], "use [redacted: secret] and [redacted: secret]")
      assert.deepStrictEqual(started?.data["redact"], ["secret"])
      const [field] = (started?.redacted ?? []) as ReadonlyArray<Record<string, unknown>>
      assert.deepInclude(field, { at: "/task", count: 2, bytes: task.length })
      const user = recordsOf(text).find(({ event_type, step }) => event_type === "message_committed" && step === "user")
      const [again] = (user?.redacted ?? []) as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(
        [again?.["at"], again?.["hmac"]],
        ["/content", field?.["hmac"]],
        "equal text, equal digest"
      )
      assert.include(context, task, "the model reads what was said")
      assert.isTrue(validateText(text).ok)
    })
  )

  it.effect("gives tools what was said, and the record what may be written", () =>
    Effect.gen(function* () {
      const { outcome, performed, text } = yield* play(
        [call("save", { name: `${secret}.txt`, content: secret }), "done"],
        {
          trace
        }
      )
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.isAbove(outcome.redactions ?? 0, 0)
      assert.include(JSON.stringify(performed), secret)
      assert.notInclude(text, secret)
    }).pipe(Effect.provideService(Approval, allowAll))
  )

  it.effect("is that of any run where nothing was found, save for the names of the rules", () =>
    Effect.gen(function* () {
      const turns = [call("add", { a: 1, b: 1 }), "two"]
      const { outcome, text } = yield* play(turns, { trace })
      assert.isUndefined(outcome.redactions)
      assert.notInclude(text, '"redacted"')
      const { registry } = yield* TestTools.make()
      const verdict = yield* replay(recordsOf(text), { tools: registry })
      assert.deepStrictEqual([verdict.same, verdict.divergence], [true, undefined])
    })
  )

  it.effect("counts the pieces of a turn, which could spell a secret, and shows none", () =>
    Effect.gen(function* () {
      const turns = [{ text: ["Sq9", "-", "4711"] }]
      const { text } = yield* play(turns, { trace: { ...trace, tokenEvents: true } })
      assert.notInclude(text, '"ids"')
      assert.include(text, '"data":{"count":1}')
      assert.isTrue(validateText(text).ok)
    })
  )

  it.effect("is not believed when it says otherwise than it shows", () =>
    Effect.gen(function* () {
      const { text } = yield* play([`it is ${secret}`], { trace })
      const broken = (type: string, edit: (line: Record<string, unknown>) => void) =>
        rulesBroken(edited(text, type, edit))
      assert.deepStrictEqual(
        broken("model_call_finished", (line) => void (line["redacted"] = [])),
        ["T64"]
      )
      const field = (line: Record<string, unknown>) => (line["redacted"] as Array<Record<string, unknown>>)[0]!
      assert.deepStrictEqual(
        broken("run_completed", (line) => void (field(line)["count"] = 2)),
        ["T64"]
      )
      assert.deepStrictEqual(
        broken("run_completed", (line) => void (field(line)["at"] = "/nowhere")),
        ["T64"]
      )
      assert.deepStrictEqual(
        broken("run_completed", (line) => void (field(line)["hmac"] = "0".repeat(64))),
        ["T42"],
        "the final text is not what the last turn says, though both read alike"
      )
      const renamed = edited(text, "run_completed", (line) => {
        line["data"] = { ...(line["data"] as object), final_text: "it is [redacted: other]" }
      })
      assert.deepStrictEqual(rulesBroken(renamed), ["T64"])
    })
  )
})

describe("a redacted record", () => {
  it.effect("is continued by nobody, and replayed by nobody, and says why", () =>
    Effect.gen(function* () {
      const turns = [call("add", { a: 1, b: 1 })]
      const { text } = yield* play(turns, { task: secret, trace, limits: { modelTurns: 1 } })
      const { registry } = yield* TestTools.make()
      const again = { traces: [recordsOf(text)], tools: registry, trace }
      const refused = yield* Effect.flip(Effect.provide(resume(again), layerScripted({ turns: ["two"] })))
      assert.match(refused.message, /^redacted: .*\(secret\), first in event 0/)
      const unplayed = yield* Effect.flip(replay(recordsOf(text), { tools: registry }))
      assert.match(unplayed.message, /^redacted: /)
    })
  )

  it.effect("is continued where nothing was replaced, by whoever says the rules again", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("add", { a: 1, b: 1 })], { trace, limits: { modelTurns: 1 } })
      const { registry } = yield* TestTools.make()
      const again = { traces: [recordsOf(text)], tools: registry, trace: { content: true } }
      const going = (options: Parameters<typeof resume>[0]) =>
        Effect.gen(function* () {
          const outcome = yield* resume(options)
          return { outcome, text: (yield* MemoryTraces).text(outcome.runId) }
        }).pipe(Effect.provide(layerScripted({ turns: [secret] })))
      const refused = yield* Effect.flip(going(again))
      assert.match(refused.message, /^redaction rules: the run was recorded under secret/)
      const gone = yield* going({ ...again, trace })
      assert.strictEqual(gone.outcome.text, secret)
      assert.notInclude(gone.text, secret)
      assert.isTrue(validateText(gone.text).ok)
    })
  )

  it.effect("has calls that are not compared, which is no mismatch", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("add", { a: 1, b: 1 }), call("add", { a: 4711, b: 1 }), "x"], {
        trace: { content: true, redact: [{ name: "number", pattern: "4711" }] }
      })
      const { registry } = yield* TestTools.make()
      const report = yield* replayCalls(runOf(text), { tools: registry, settings: { fixtures: {} } }).pipe(
        Effect.provide(layerInline())
      )
      assert.deepStrictEqual([report.verdict, report.matched, report.skipped], ["match", 1, 1])
      assert.deepInclude(report.calls[1], { _tag: "Skipped", reason: "its arguments or its result were redacted" })
    })
  )

  it.effect("is not the same as another because both read alike", () =>
    Effect.gen(function* () {
      const one = yield* play(["Sq9-1"], { trace })
      const other = yield* play(["Sq9-2"], { trace })
      const { aspects } = diff(runOf(one.text), runOf(other.text))
      assert.strictEqual(aspects.answers === "same", false)
    })
  )
})

describe("rules that cannot be used", () => {
  it.effect("end a run before it has a record, each by its name", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const bad = { task: "t", tools: registry, trace: { redact: [{ name: "open", pattern: "(" }] } }
      const error = yield* Effect.flip(Agent.run(bad))
      assert.strictEqual(error._tag, "InvalidOptions")
      assert.include(error.message, "redaction rule open: it is not a regular expression")
      assert.deepStrictEqual((yield* MemoryTraces).runs(), [])
    }).pipe(Effect.provide(layerScripted({ turns: [] })))
  )
})
