/** R-PHERON-14 to 22: questions, verdicts, failures, sizes, ends, the context, loops, sampling and boundaries. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { ArtifactStore } from "../../src/actors/ArtifactStore.ts"
import { ToolPool } from "../../src/actors/ToolPool.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { exitCode } from "../../src/effects/Outcome.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { resume } from "../../src/effects/Resume.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { checkClaims } from "../../src/effects/trace/claims/ClaimCheck.ts"
import { MetricsCounter } from "../../src/effects/trace/TraceMetrics.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import type { TurnRequest } from "../../src/engine/Generation.ts"
import { Model } from "../../src/engine/Model.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { answers, assistant, decide, result, settled, talk, trace, use, user } from "../kit/evals.ts"
import { answered } from "../kit/routes.ts"
import { play } from "../kit/run.ts"
import { call, calls } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"
import { fetching, granting, serving } from "../kit/web.ts"

const add = (a: number) => call("add", { a, b: 1 })
const asks = 'CLARIFY("Which one?")'

const recordsOf = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

/** A tool that returns what it is told to. */
const reading = (what: () => string) =>
  Registry.fromDynamic([
    {
      name: "read",
      description: "Reads.",
      schema: { type: "object", properties: {} },
      contract: { risk: "read" },
      run: () => Effect.sync(what)
    }
  ])

/** Runs with a wrapper around the engine that remembers what each turn was asked for. */
const spied = (turns: Script["turns"], options: RunOptions & { readonly codec?: string } = {}) =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const requests: Array<TurnRequest> = []
    const model = yield* Model
    const session = Effect.map(model.session, (real) => ({
      ...real,
      turn: (...[opening, request]: Parameters<typeof real.turn>) => {
        requests.push(request)
        return real.turn(opening, request)
      }
    }))
    const run = Agent.run({ task: "t", tools: registry, trace: { content: true }, ...options })
    const outcome = yield* Effect.provideService(run, Model, { ...model, session })
    return { outcome, requests, text: (yield* MemoryTraces).text(outcome.runId) }
  }).pipe(Effect.provide(layerScripted({ turns })))

describe("R-PHERON-14: CLARIFY matrix", () => {
  it.effect("as the whole visible turn it asks, ends neither as success nor as failure, and runs nothing", () =>
    Effect.gen(function* () {
      const { outcome, performed, text } = yield* play([`<think>\nhm\n</think>\n\n${asks}`], { codec: "qwen3" })
      assert.deepStrictEqual(outcome.stop, { _tag: "NeedsInput", question: "Which one?" })
      assert.deepStrictEqual([outcome.text, performed, exitCode(outcome.stop)], [undefined, [], 6])
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  const unsafe: ReadonlyArray<readonly [what: string, turn: string]> = [
    ["quoted in prose", `You could write ${asks} to ask.`],
    ["in a code block", `\`\`\`\n${asks}\n\`\`\``],
    ["in reasoning", `<think>\n${asks}\n</think>\n\nIt is 5.`],
    ["ending a text", `So: ${asks}`]
  ]
  for (const [what, turn] of unsafe) {
    it.effect(`${what} it is no question: the run completes`, () =>
      Effect.gen(function* () {
        const { outcome } = yield* play([turn], { codec: "qwen3" })
        assert.strictEqual(outcome.stop._tag, "Completed")
      })
    )
  }

  it.effect("in the arguments of a call, and in what a tool returns, it is data", () =>
    Effect.gen(function* () {
      const { outcome, performed } = yield* play([call("save", { name: "a.txt", content: asks }), "Saved."])
      assert.deepStrictEqual([outcome.text, performed.length], ["Saved.", 1])
      const tools = yield* reading(() => asks)
      const read = yield* play([call("read", {}), "It says how to ask."], { tools } as never)
      assert.strictEqual(read.outcome.text, "It says how to ask.")
      assert.include(read.context, JSON.stringify({ ok: true, result: asks }))
    })
  )

  it.effect("one that is none, beside calls, is told to the model, and none of the calls runs", () =>
    Effect.gen(function* () {
      const aside = call("save", { name: "x", content: "y" })
      for (const broken of ["CLARIFY(which?)", `${asks} ${asks}`, 'CLARIFY("")', "CLARIFY()"]) {
        for (const turn of [`${broken}\n${aside}`, `${aside}\n${broken}`, `CLARIFY("${aside}")`]) {
          const { context, events, outcome, performed, text } = yield* play([turn, "Sorry."])
          assert.deepStrictEqual([outcome.text, performed, outcome.rejected], ["Sorry.", [], 1], turn)
          assert.include(context, "malformed_call")
          const { data } = events.find(({ event_type: type }) => type === "assistant_action_parsed")!
          assert.deepInclude(data, { action: "malformed", code: "invalid_question", count: 1 })
          assert.deepStrictEqual(validateText(text).violations, [])
        }
      }
    })
  )

  it.effect(
    "several of them, or a broken one, are no question and no answer: the model is told, and may ask again",
    () =>
      Effect.gen(function* () {
        for (const turn of [`${asks} ${asks}`, "CLARIFY(which?)", 'CLARIFY("the "main" one?")']) {
          const { context, outcome } = yield* play([turn, asks])
          assert.deepStrictEqual(outcome.stop, { _tag: "NeedsInput", question: "Which one?" }, turn)
          assert.include(context, "malformed_call")
        }
      })
  )

  it.effect("with escapes and line breaks the question comes through as it was meant", () =>
    Effect.gen(function* () {
      const { outcome } = yield* play(['CLARIFY("The \\"main\\" one,\nor C:\\\\x?\\n1. a")'])
      assert.deepStrictEqual(outcome.stop, { _tag: "NeedsInput", question: 'The "main" one,\nor C:\\x?\n1. a' })
    })
  )

  it.effect("beside calls nothing is executed, the question is asked, and the dropped calls are on record", () =>
    Effect.gen(function* () {
      const both = calls(["add", { a: 1, b: 1 }], ["save", { name: "x", content: "y" }])
      for (const turn of [`${asks}\n${both}`, `${both}\n${asks}`]) {
        const { events, outcome, performed } = yield* play([turn])
        assert.deepStrictEqual(outcome.stop, { _tag: "NeedsInput", question: "Which one?" })
        assert.deepStrictEqual([performed, outcome.skipped], [[], 2])
        const dropped = events.filter(({ event_type: type }) => type === "call_skipped")
        assert.deepStrictEqual(
          dropped.map(({ data }) => data["tool"]),
          ["add", "save"]
        )
      }
    })
  )

  it.effect("the answer goes on in the same session with the same budgets", () =>
    Effect.gen(function* () {
      const { context, first, second, texts } = yield* answered([add(1), asks, add(2), "never"], "This.", {
        limits: { modelTurns: 3 }
      })
      assert.deepStrictEqual([first.stop._tag, second.stop], ["NeedsInput", { _tag: "Limit", kind: "model_turns" }])
      assert.include(context, "user\nThis.")
      for (const text of texts) assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("and so it does from the record, in a fresh session", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const asked = yield* play([add(1), asks])
      const go = (turns: Script["turns"], limits: RunOptions["limits"] = {}) =>
        Effect.gen(function* () {
          const options = {
            traces: [recordsOf(asked.text)],
            tools: registry,
            answer: "This.",
            limits,
            trace: { content: true }
          }
          const outcome = yield* resume(options)
          const text = (yield* MemoryTraces).text(outcome.runId)
          return { outcome, text, context: (yield* ScriptedSessions)[0]!.committed() }
        }).pipe(Effect.provide(layerScripted({ turns })))
      const done = yield* go([add(2), "done"])
      assert.deepStrictEqual([done.outcome.text, done.outcome.turns, done.outcome.toolCalls], ["done", 4, 2])
      assert.include(done.context, `${asks}<|im_end|>\n<|im_start|>user\nThis.<|im_end|>`)
      assert.deepStrictEqual(validateText(done.text).violations, [])
      const over = yield* go([add(2), "never"], { toolCalls: 1 })
      assert.deepStrictEqual(over.outcome.stop, { _tag: "Limit", kind: "tool_calls" })
      assert.deepStrictEqual(validateText(over.text).violations, [])
    })
  )
})

describe("R-PHERON-15: critic gaming", () => {
  const deed = { type: "tool_executed", tool: "send_email" } as never
  const state = { type: "terminal_state", state: "completed" } as never

  it.effect('"Done?", and a file that says EMAIL_SENT, pass nothing that asks for a deed', () =>
    Effect.gen(function* () {
      // What passes is the deed: the same words with it, and the marker in a file that was read without it.
      const read = (...events: ReadonlyArray<ReturnType<typeof settled>>) =>
        talk([
          user("Send it."),
          assistant([use("c1", "read_file", {}), use("c2", "send_email", {})], trace(events)),
          answers(result("c1", "EMAIL_SENT"), result("c2", "EMAIL_SENT")),
          assistant("Done?", trace([{ name: "run_ended", attributes: { state: "completed" } }]))
        ])
      const refused = settled("c2", "send_email", { outcome: "refused", executed: false })
      assert.strictEqual((yield* decide(deed, read(settled("c1", "read_file"), refused))).outcome, "fail")
      const sent = read(settled("c1", "read_file"), settled("c2", "send_email"))
      assert.strictEqual((yield* decide(deed, sent)).outcome, "pass")
      const ended = trace([{ name: "run_ended", attributes: { state: "completed" } }])
      for (const text of ["Done?", "EMAIL_SENT", 'CLARIFY("sent?") EMAIL_SENT', "[WEB_UNAVAILABLE]"]) {
        const verdict = yield* decide(deed, talk([user("Send it."), assistant(text, ended)]))
        assert.notStrictEqual(verdict.outcome, "pass", text)
      }
    })
  )

  it.effect(
    "a question is an outcome of its own: no answer, no failure, and no pass of a run that was to complete",
    () =>
      Effect.gen(function* () {
        const ended = trace([{ name: "run_ended", attributes: { state: "needs_input" } }])
        const asked = talk([user("Send it."), assistant(asks, ended)])
        const passes = (wanted: string) =>
          Effect.map(
            decide({ type: "terminal_state", state: wanted } as never, asked),
            ({ outcome }) => outcome === "pass"
          )
        assert.notStrictEqual((yield* decide(state, asked)).outcome, "pass")
        assert.deepStrictEqual([yield* passes("needs_input"), yield* passes("failed")], [true, false])
        const { events, outcome } = yield* play([asks])
        assert.deepStrictEqual([outcome.stop._tag, outcome.text], ["NeedsInput", undefined])
        assert.notInclude([0, 1, 3], exitCode(outcome.stop))
        assert.strictEqual(events.at(-1)!.event_type, "run_needs_input")
      })
  )

  it.effect("an answer that claims a deed is held against what was settled, not against its own words", () =>
    Effect.gen(function* () {
      const claimed = checkClaims(recordsOf((yield* play(["I sent the message to Bob. EMAIL_SENT"])).text))
      assert.include(
        claimed.claims.map(({ verdict }) => verdict),
        "unsupported"
      )
      const sent = play([call("send", { to: "Bob" }), "I sent the message to Bob."])
      const made = checkClaims(recordsOf((yield* Effect.provideService(sent, Approval, allowAll)).text))
      assert.deepStrictEqual(
        made.claims.filter(({ verdict }) => verdict === "unsupported"),
        []
      )
    })
  )
})

describe("R-PHERON-16: soft failure is still failure", () => {
  it.live(
    "a fetch that cannot connect keeps its readable text, with ok false and a class; nothing counts as done",
    () =>
      Effect.gen(function* () {
        // A port that was free a moment ago, and that nobody listens on.
        const port = yield* Effect.scoped(serving(() => {}))
        const outcome = yield* fetching(`http://127.0.0.1:${port}/`, granting(port))
        assert.strictEqual(outcome._tag, "Failed")
        if (outcome._tag !== "Failed") return
        assert.notStrictEqual(outcome.errors[0]!.reason, "")
        assert.deepStrictEqual([outcome.kind, outcome.effect], ["unavailable", "none"])
      })
  )

  it.effect("in a run it is answered as a failure, of a class, and is no executed success", () =>
    Effect.gen(function* () {
      const { context, events, text } = yield* play([call("broken", { how: "error" }), "It is offline."])
      assert.include(context, '{"ok":false,"kind":"execution_failed","errors":[{"path":"","reason":"it broke"}]')
      const { data } = events.find(({ event_type: type }) => type === "tool_execution_finished")!
      assert.deepInclude(data, { ok: false, failure_kind: "execution_failed" })
      const successes = (of: string) => {
        const counter = new MetricsCounter()
        const feed = counter.feed("trace.jsonl")
        for (const record of recordsOf(of)) feed.see(record)
        feed.end()
        const { classes, postconditionSuccess, progressAfterFailure, readSuccess } = counter.measure()
        return [classes, postconditionSuccess.count, readSuccess.count, progressAfterFailure.count]
      }
      assert.deepStrictEqual(successes(text), [{ postcondition: 1 }, 0, 0, 0])
      assert.deepStrictEqual(successes((yield* play([add(1), "2"])).text), [{}, 0, 1, 0])
    })
  )
})

describe("R-PHERON-17: result size", () => {
  it.effect("the cap is exact: what has as many bytes is whole, one more and it is cut", () =>
    Effect.gen(function* () {
      const shown = Effect.fnUntraced(function* (resultBytes: number) {
        const { outcome } = yield* play([call("long", { length: 900 }), "ok"], { limits: { resultBytes } })
        return outcome.transcript.find((entry) => entry.kind === "tool")!.content
      })
      const whole = yield* shown(100_000)
      const bytes = Buffer.byteLength(whole)
      assert.strictEqual(yield* shown(bytes), whole)
      const cut = yield* shown(bytes - 1)
      assert.notStrictEqual(cut, whole)
      assert.isAtMost(Buffer.byteLength(cut), bytes - 1)
      assert.notInclude(cut, "\uFFFD")
    })
  )

  it.effect("is capped exactly, by whole characters; the excerpt names the whole, which is kept", () =>
    Effect.gen(function* () {
      const kept: Array<number> = []
      const counting = Layer.effect(
        ArtifactStore,
        Effect.map(ArtifactStore, (real) => ({
          ...real,
          put: (...args: Parameters<typeof real.put>) => {
            kept.push(args[1].bytes.length)
            return real.put(...args)
          }
        }))
      )
      const turns = [call("long", { length: 5_000 }), "ok"]
      const { registry } = yield* TestTools.make()
      const outcome = yield* Agent.run({ task: "t", tools: registry, limits: { resultBytes: 1_000 } }).pipe(
        Effect.provide(Layer.provideMerge(counting, layerScripted({ turns })))
      )
      const shown = outcome.transcript.find((entry) => entry.kind === "tool")!.content
      const whole = Buffer.byteLength("ab€𝄞".repeat(1_000).slice(0, 5_000))
      assert.isAtMost(Buffer.byteLength(shown), 1_000)
      assert.isAbove(Buffer.byteLength(shown), 900)
      assert.notInclude(shown, "\uFFFD")
      assert.include(shown, String(whole))
      assert.deepStrictEqual(kept, [whole])
      assert.include(shown, outcome.artifacts[0]!.artifactId)
    })
  )
})

describe("R-PHERON-18: runaway without EOS", () => {
  it.effect("a model that never ends its turn is cut, continued once, and cut for good; half an answer is none", () =>
    Effect.gen(function* () {
      const endless = { text: Array.from({ length: 500 }, () => "on ") }
      const { outcome, text } = yield* play([endless, endless, "never"], { limits: { outputTokens: 20 } })
      assert.deepInclude(outcome.stop, { _tag: "Limit", kind: "output_tokens" })
      assert.deepStrictEqual([outcome.text, outcome.usage.outputTokens], [undefined, 40])
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("a limit of no tokens at all, or of endless ones, is refused", () =>
    Effect.gen(function* () {
      for (const outputTokens of [0, Infinity]) {
        assert.strictEqual((yield* Effect.flip(play(["x"], { limits: { outputTokens } })))._tag, "InvalidOptions")
      }
    })
  )

  it.effect("the family's own marks end a turn beside the model's end token: every turn is asked for with them", () =>
    Effect.gen(function* () {
      for (const id of ids) {
        const { ends } = Result.getOrThrow(byId(id))
        const { requests } = yield* spied(["x"], { codec: id, limits: { modelTurns: 1, repairs: 0 } })
        assert.isNotEmpty(ends, id)
        assert.deepStrictEqual(
          requests.map((request) => request.ends),
          [ends],
          id
        )
      }
    })
  )

  it.live("a model file whose metadata names no end token still ends its turns", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-runaway-"))),
      (directory) =>
        Effect.gen(function* () {
          const bytes = readFileSync(Wiring.tinyModel)
          for (const name of ["eos", "eot"]) {
            const at = bytes.indexOf(`tokenizer.ggml.${name}_token_id`)
            if (at >= 0) bytes.write("x", at + "tokenizer.ggml.".length)
          }
          assert.isBelow(bytes.indexOf("tokenizer.ggml.eos_token_id"), 0)
          const model = join(directory, "endless.gguf")
          writeFileSync(model, bytes)
          const ran = Effect.gen(function* () {
            const { registry } = yield* TestTools.make()
            return yield* Agent.run({
              task: "What is 17.5% of 240?",
              tools: yield* Registry.pick(registry, ["add"]),
              limits: { outputTokens: 64, modelTurns: 1 }
            })
          })
          const engine = Wiring.layerModel({ model, modelHash: false, contextTokens: 2_048, sessions: 1 })
          const outcome = yield* Effect.provide(ran, Layer.merge(layerScripted({ turns: [] }), engine))
          assert.notStrictEqual(outcome.stop._tag, "Failed")
          assert.isBelow(outcome.usage.outputTokens, 64)
        }),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
    )
  )
})

describe("R-PHERON-19: eviction of tool schemas", () => {
  for (const onFull of ["refuse", "compact"] as const) {
    it.effect(`${onFull}: however full the context gets, system and tools are still its first tokens`, () =>
      Effect.gen(function* () {
        const { registry } = yield* TestTools.make()
        const session = yield* Agent.session({ tools: registry, system: "S" })
        const committed = yield* Effect.map(ScriptedSessions, (logs) => () => logs[0]!.committed())
        let prefix = ""
        const stops: Array<string> = []
        for (let at = 0; at < 12; at++) {
          const outcome = yield* Agent.runIn(session, "x".repeat(600), {
            limits: { outputTokens: 32 },
            context: { onFull }
          })
          if (at === 0) prefix = committed().slice(0, committed().indexOf("<|im_start|>user"))
          assert.isTrue(committed().startsWith(prefix))
          stops.push(outcome.stop._tag)
        }
        for (const { name } of registry.tools) assert.include(prefix, `"name": "${name}"`)
        assert.strictEqual(stops.includes("ContextExhausted"), onFull === "refuse", stops.join())
      }).pipe(
        Effect.scoped,
        Effect.provide(layerScripted({ turns: Array.from({ length: 40 }, () => "ok"), contextTokens: 1_800 }))
      )
    )
  }
})

describe("R-PHERON-20: loop detection", () => {
  const loops = (turns: ReadonlyArray<string>, options: RunOptions = {}) =>
    Effect.map(play([...turns, "done"], options), ({ outcome, performed }) => [outcome.stop._tag, performed.length])

  it.effect("A, A, A and A, B, A, B, … end the run with a state of their own, at the threshold exactly", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* loops([add(1), add(1)]), ["Completed", 2])
      assert.deepStrictEqual(yield* loops([add(1), add(1), add(1)]), ["LoopDetected", 3])
      const pingPong = [add(1), add(2), add(1), add(2), add(1)]
      assert.deepStrictEqual(yield* loops(pingPong), ["Completed", 5])
      assert.deepStrictEqual(yield* loops([...pingPong, add(2)]), ["LoopDetected", 6])
      assert.deepStrictEqual(yield* loops([add(1), add(1)], { limits: { loopThreshold: 2 } }), ["LoopDetected", 2])
    })
  )

  it.effect("results that change start the count anew", () =>
    Effect.gen(function* () {
      const turns = [...Array.from({ length: 5 }, () => call("read", {})), "done"]
      let at = 0
      const changing = yield* play(turns, { tools: yield* reading(() => String(at++)) } as never)
      assert.strictEqual(changing.outcome.stop._tag, "Completed")
      const same = yield* play(turns, { tools: yield* reading(() => "same") } as never)
      assert.deepStrictEqual([same.outcome.stop._tag, same.outcome.toolCalls], ["LoopDetected", 3])
    })
  )

  it.effect("another call in between starts the count anew; a tool that polls is exempt", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* loops([add(1), add(1), add(9), add(1), add(1)]), ["Completed", 5])
      assert.deepStrictEqual(yield* loops(Array.from({ length: 5 }, () => call("poll", {}))), ["Completed", 5])
    })
  )
})

describe("R-PHERON-21: sampling per phase", () => {
  it.effect("no turn is asked for with a penalty for repetition; parameters are the phase's, and on record", () =>
    Effect.gen(function* () {
      const options = { sampling: { temperature: 0.7, seed: 3 }, phases: { tool: { temperature: 0, topK: 1 } } }
      const { requests, text } = yield* spied([add(1), "It is 2."], options)
      for (const { sampling } of requests)
        assert.sameMembers(Object.keys(sampling), ["temperature", "topK", "topP", "seed"])
      assert.deepStrictEqual(
        requests.map(({ sampling }) => [sampling.temperature, sampling.topK]),
        [
          [0.7, 40],
          [0, 1]
        ]
      )
      const phases = recordsOf(text).filter(({ event_type: type }) => type === "phase_started")
      assert.deepStrictEqual(
        phases.map(({ data }) => [data["phase"], data["temperature"], data["top_k"]]),
        [
          ["plan", 0.7, 40],
          ["tool", 0, 1]
        ]
      )
      const seeds = recordsOf(text).flatMap(({ data }) => (data["seed"] === undefined ? [] : [data["seed"]]))
      assert.deepStrictEqual(
        seeds,
        requests.map(({ sampling }) => sampling.seed)
      )
    })
  )

  it.effect("arguments with long repeated paths arrive as they were written", () =>
    Effect.gen(function* () {
      const path = "src/components/components/components/Button/Button/Button.tsx\n".repeat(20)
      const { performed } = yield* play([call("save", { name: "paths.txt", content: path }), "ok"])
      assert.deepStrictEqual(performed, [`save:${JSON.stringify({ name: "paths.txt", content: path })}`])
    })
  )
})

describe("R-PHERON-22: typed boundary", () => {
  it.effect("the pool is given admitted calls and nothing of what the model wrote around them", () =>
    Effect.gen(function* () {
      const given: Array<string> = []
      const spy = Layer.effect(
        ToolPool,
        Effect.map(ToolPool, (real) => ({
          run: (...args: Parameters<typeof real.run>) => {
            const { tool, ...rest } = args[0]
            given.push(JSON.stringify({ tool: tool.name, ...rest }))
            return real.run(...args)
          }
        }))
      )
      const { registry } = yield* TestTools.make()
      const turn = `<think>\nCANARY-1\n</think>\n\nCANARY-2\n${call("save", { name: "a", content: "inside" })}\n`
      const outcome = yield* Agent.run({ task: "CANARY-3", tools: registry, codec: "qwen3" }).pipe(
        Effect.provide(Layer.provideMerge(spy, layerScripted({ turns: [turn, "done CANARY-4"] })))
      )
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.lengthOf(given, 1)
      assert.include(given[0], "inside")
      assert.notInclude(given.join(""), "CANARY")
      const fields = Object.keys(JSON.parse(given[0]!) as object)
      const known = ["tool", "callId", "runId", "arguments", "deadlineMillis", "settings", "ready", "detached"]
      assert.includeMembers(known, fields)
    })
  )
})
