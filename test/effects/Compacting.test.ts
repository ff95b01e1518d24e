import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import type { Session } from "../../src/effects/RunContext.ts"
import * as Sessions from "../../src/effects/Session.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { byId } from "../../src/engine/codecs/Families.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import { call, lines } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const committed = Effect.map(ScriptedSessions, (logs) => logs.at(-1)!.committed())

const opened = (codec = "qwen2.5") =>
  Effect.flatMap(TestTools.make(), ({ registry }) => Agent.session({ tools: registry, system: "Be brief.", codec }))

const compacting: RunOptions = {
  context: { onFull: "compact" },
  limits: { outputTokens: 32 },
  trace: { content: true }
}

/** A conversation of so many questions, each with an answer and most with a call. */
const talk = Effect.fnUntraced(function* (session: Session, count: number, options: RunOptions = compacting, from = 0) {
  const outcomes = []
  for (let at = from; at < from + count; at++) {
    outcomes.push(yield* Agent.runIn(session, `Question ${at}: ${"what is it ".repeat(12)}?`, options))
  }
  return outcomes
})

const add = (a: number) => call("add", { a, b: 1 })
const turns = (count: number): Script["turns"] =>
  Array.from({ length: count }, (_, at) => (at % 2 === 0 ? add(at) : `Answer ${(at - 1) / 2}.`))

/** How long the context is after so many questions, in an engine where they all fit. */
const sizeAfter = (count: number) =>
  Effect.gen(function* () {
    const session = yield* opened()
    yield* talk(session, count)
    return { length: yield* session.context.length }
  }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: turns(2 * count) })))

/** Each call that is in the context has its answer there. The tools' own text shows one call, and no answer. */
const assertPaired = (log: string): void => {
  const calls = log.split('<tool_call>\n{"name": "add"').length + log.split('<tool_call>\n{"name":"add"').length - 2
  assert.strictEqual(calls, log.split("<tool_response>").length - 1)
}

const traces = Effect.map(MemoryTraces, (memory) => memory.runs().map((id) => memory.text(id)))
const compactions = (text: string) => lines(text).filter(({ event_type }) => event_type === "context_compacted")

/** Every record is good, whatever was compacted in between. */
const allValid = Effect.map(traces, (all) => {
  for (const text of all) assert.deepStrictEqual(validateText(text).violations, [])
  return all
})

const withRoomFor = (contextTokens: number, count = 40) =>
  Effect.provide(layerScripted({ turns: turns(count), contextTokens }))

describe("a context that is full", () => {
  it.effect("ends the run context_exhausted by default, with all that was said still in it", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        const outcomes = yield* talk(session, 4, { limits: { outputTokens: 32 }, trace: { content: true } })
        assert.deepStrictEqual(
          outcomes.map(({ stop }) => stop._tag),
          ["Completed", "Completed", "Completed", "ContextExhausted"]
        )
        assert.include(yield* committed, "Question 0")
        for (const text of yield* allValid) assert.deepStrictEqual(compactions(text), [])
      }).pipe(withRoomFor(length + 60))
    })
  )

  for (const id of [
    "qwen2.5",
    "qwen3",
    "qwen3-coder",
    "llama3",
    "mistral",
    "mistral-nemo",
    "gemma3",
    "generic-json",
    "gpt-oss"
  ]) {
    it.effect(`keeps what it keeps in the very text a session holds that never was full: ${id}`, () =>
      Effect.gen(function* () {
        const codec = Result.getOrThrow(byId(id))
        const said = (at: number): ReadonlyArray<string> => {
          const name = { name: "add", arguments: { a: at, b: 1 }, id: `abcdefgh${at}` }
          return [flatten(codec.written({ role: "assistant", content: "", calls: [name] })), `Answer ${at}.`]
        }
        const script = [0, 1, 2, 3].flatMap(said)
        const whole = yield* Effect.gen(function* () {
          const session = yield* opened(id)
          const outcomes = yield* talk(session, 4, { limits: { outputTokens: 64 } })
          const last = outcomes.map(({ transcript }) => transcript.at(-1)!.span!.end)
          return { log: yield* committed, last, calls: outcomes.map(({ toolCalls }) => toolCalls) }
        }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: script })))
        assert.deepStrictEqual(whole.calls, [1, 1, 1, 1])
        yield* Effect.gen(function* () {
          const session = yield* opened(id)
          yield* talk(session, 4, { ...compacting, limits: { outputTokens: 64 } })
          const log = yield* committed
          const marker = session.transcript.entries.find(({ kind }) => kind === "marker")!
          const first = flatten(codec.user(session.transcript.entries.find(({ kind }) => kind === "user")!.content))
          assert.isTrue(whole.log.endsWith(log.slice(log.indexOf(first))))
          const prefix = log.slice(0, log.indexOf(flatten(codec.user(marker.content))))
          assert.isAbove(prefix.length, 0)
          assert.isTrue(whole.log.startsWith(prefix))
          yield* allValid
        }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: script, contextTokens: whole.last[3]! })))
      })
    )
  }

  it.effect("goes on for as long as anybody asks, every record valid and every answer with its call", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        const outcomes = yield* talk(session, 12)
        assert.isTrue(outcomes.every(({ stop }) => stop._tag === "Completed"))
        const all = yield* allValid
        const made = all.flatMap(compactions)
        assert.isAtLeast(made.length, 2)
        const log = yield* committed
        const prefix = log.slice(0, log.indexOf("<|im_start|>user"))
        assert.include(prefix, "Be brief.")
        assert.include(prefix, '"name": "add"')
        assert.notInclude(log, "Question 0:")
        assert.include(log, "Question 11:")
        assertPaired(log)
        const removed = made.at(-1)!.data["removed"]
        assert.include(log, `[${String(removed)} earlier exchanges of this conversation were removed`)
        assert.strictEqual(log.split("earlier exchange").length, 2, "one marker, not one for each time")
        const { transcript } = outcomes.at(-1)!
        assert.strictEqual(
          transcript.filter(({ kind }) => kind === "user").length,
          12,
          "the transcript keeps everything"
        )
        assert.strictEqual(transcript.filter(({ dropped, kind }) => dropped && kind === "user").length, removed)
      }).pipe(withRoomFor(length + 60))
    })
  )

  it.effect("holds after a compaction exactly what was said, as a session holds it that was told only that", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        yield* talk(session, 4)
        const log = yield* committed
        const marker = session.transcript.entries.find(({ kind }) => kind === "marker")!
        const kept = session.transcript.entries.filter(({ kind }) => kind === "user").map(({ content }) => content)
        const firstKept = log.indexOf(kept[0]!)
        const untouched = yield* Effect.gen(function* () {
          yield* talk(yield* opened(), 4, { limits: { outputTokens: 32 } })
          return yield* committed
        }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: turns(8) })))
        assert.include(log, marker.content)
        assert.strictEqual(log.slice(firstKept), untouched.slice(untouched.indexOf(kept[0]!)))
        assert.isTrue(untouched.startsWith(log.slice(0, log.indexOf(marker.content))))
        let end = 0
        for (const { span } of session.transcript.entries) {
          if (span!.end !== end) assert.strictEqual(span!.start, end)
          end = span!.end
        }
        assert.strictEqual(yield* session.context.length, end)
      }).pipe(withRoomFor(length + 60))
    })
  )

  it.effect("makes room for a message that does not fit, before the message is evaluated", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        yield* talk(session, 3)
        const task = "much ".repeat(120)
        const { stop } = yield* Agent.runIn(session, task, compacting)
        assert.strictEqual(stop._tag, "Completed")
        const [found] = compactions((yield* allValid).at(-1)!)
        assert.strictEqual(found?.data["for"], "message")
        assert.include(yield* committed, task)
      }).pipe(withRoomFor(length + 60))
    })
  )

  it.effect("counts the marker: what is kept is always back, in whatever room there is", () =>
    Effect.gen(function* () {
      const tight: RunOptions = { context: { onFull: "compact", keep: 1 }, limits: { outputTokens: 8 } }
      const short = ["Yes.", "No.", "Two.", "Ten.", "Six."]
      const size = yield* Effect.gen(function* () {
        const session = yield* opened()
        yield* Agent.runIn(session, "Is it?", tight)
        return { prefix: session.transcript.entries[0]!.span!.end, one: yield* session.context.length }
      }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: short })))
      let made = 0
      for (let more = 0; more < 3 * (size.one - size.prefix) + 60; more++) {
        yield* Effect.gen(function* () {
          const session = yield* opened()
          for (const _ of short) {
            const { stop } = yield* Agent.runIn(session, "Is it?", { ...tight, trace: { content: true } })
            assert.include(["Completed", "ContextExhausted"], stop._tag)
            assert.deepStrictEqual(session.transcript.aside, [], `${more}`)
          }
          made += (yield* allValid).flatMap(compactions).length
        }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: short, contextTokens: size.one + more })))
      }
      assert.isAbove(made, 0)
    })
  )

  it.effect("ends the run where even the last exchange alone does not fit, and removes nothing for that", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(2)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        yield* talk(session, 2)
        const before = yield* committed
        const { stop } = yield* Agent.runIn(session, "much ".repeat(4 * length), compacting)
        assert.strictEqual(stop._tag, "ContextExhausted")
        assert.strictEqual(yield* committed, before)
        yield* allValid
      }).pipe(withRoomFor(length + 60))
    })
  )

  it.effect("does not take the call away from answers that are still owed, however full it is", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      let before = 0
      for (let more = 40; more < 80; more += 2) {
        yield* Effect.gen(function* () {
          const session = yield* opened()
          yield* talk(session, 3)
          const limits = { outputTokens: 32, toolCalls: 0 }
          const stopped = yield* Agent.runIn(session, "Add.", { ...compacting, limits })
          if (stopped.stop._tag !== "Limit") return
          assert.isDefined(session.owed)
          yield* Agent.runIn(session, "And?", compacting)
          assert.isUndefined(session.owed)
          assertPaired(yield* committed)
          const text = (yield* allValid).at(-1)!
          const order = lines(text).map(({ data, event_type }) => `${event_type} ${String(data["role"] ?? "")}`)
          const compacted = order.findIndex((one) => one.startsWith("context_compacted"))
          if (compacted >= 0 && compacted < order.indexOf("message_committed tool_result")) before++
        }).pipe(Effect.scoped, withRoomFor(length + more))
      }
      assert.isAbove(before, 0, "none of the sizes had the answers themselves not fit")
    })
  )

  it.effect("does not let a place of before the compaction be gone back to, and one in front of it still can", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        const start = yield* Sessions.boundary(session)
        yield* talk(session, 1)
        const early = yield* Sessions.boundary(session)
        yield* talk(session, 3, compacting, 1)
        assert.match((yield* Effect.flip(Sessions.rewind(session, early))).message, /no longer part/)
        yield* Sessions.rewind(session, start)
        assert.deepStrictEqual(session.transcript.all, [])
        assert.strictEqual(yield* session.context.length, 0)
      }).pipe(withRoomFor(length + 60))
    })
  )
})

describe("a compaction that is stopped", () => {
  it.effect("leaves a record that is valid, and the next run puts back what was missing", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        yield* talk(session, 3)
        // Stops at the second message that comes back.
        let left = 2
        const slow: Session = {
          ...session,
          context: {
            ...session.context,
            commit: (segments, progress) =>
              segments.length > 0 && session.transcript.aside.length > 0 && --left === 0
                ? Effect.never
                : session.context.commit(segments, progress)
          }
        }
        const handle = yield* Agent.startIn(slow, "much ".repeat(20), compacting)
        yield* TestClock.adjust(1)
        yield* handle.cancel
        const { stop } = yield* handle.outcome
        assert.deepStrictEqual(stop, { _tag: "Cancelled", at: "prefill" })
        const [found] = compactions((yield* allValid).at(-1)!)
        assert.isAbove(Number(found?.data["left"]), 0)
        const missing = session.transcript.aside.length
        assert.isAbove(missing, 0)
        const outcome = yield* Agent.runIn(session, "And now?", compacting)
        assert.strictEqual(outcome.stop._tag, "Completed")
        assert.deepStrictEqual(session.transcript.aside, [])
        const text = (yield* allValid).at(-1)!
        assert.isTrue(
          lines(text).some(({ data, event_type }) => event_type === "message_committed" && data["role"] === "history")
        )
        const log = yield* committed
        assertPaired(log)
      }).pipe(Effect.scoped, withRoomFor(length + 60))
    })
  )

  it.effect("is told to whoever watches, with what left", () =>
    Effect.gen(function* () {
      const { length } = yield* sizeAfter(3)
      yield* Effect.gen(function* () {
        const session = yield* opened()
        yield* talk(session, 3)
        const handle = yield* Agent.startIn(session, "much ".repeat(20), compacting)
        const events = yield* Stream.runCollect(handle.events)
        const told = events.find(({ _tag }) => _tag === "Compacted")
        assert.isDefined(told)
      }).pipe(Effect.scoped, withRoomFor(length + 60))
    })
  )
})
