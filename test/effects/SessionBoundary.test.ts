import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import * as Session from "../../src/effects/Session.ts"
import { layerScripted, ScriptedSessions } from "../../src/testing.ts"
import { call } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const add = call("add", { a: 2, b: 3 })

const opened = Effect.flatMap(TestTools.make(), ({ registry }) =>
  Agent.session({ tools: registry, system: "Be brief." })
)
const committed = Effect.map(ScriptedSessions, (logs) => logs.at(-1)!.committed())

describe("Session.rewind", () => {
  it.effect("takes context and transcript back to the place, and the same task comes out the same from there", () =>
    Effect.gen(function* () {
      const session = yield* opened
      yield* Agent.runIn(session, "first")
      const place = yield* Session.boundary(session)
      const [before, entries] = [yield* committed, [...session.transcript.entries]]
      const once = yield* Agent.runIn(session, "second")
      const after = yield* committed
      yield* Session.rewind(session, place)
      assert.strictEqual(yield* committed, before)
      assert.deepStrictEqual(session.transcript.entries, entries)
      assert.strictEqual(yield* session.context.length, place.length)
      const again = yield* Agent.runIn(session, "second")
      assert.strictEqual(yield* committed, after)
      assert.deepStrictEqual(again.transcript, once.transcript)
    }).pipe(Effect.provide(layerScripted({ turns: ["One.", add, "It is 5.", add, "It is 5."] })))
  )

  it.effect("goes back to a session that was never used, whose next run begins with the system text", () =>
    Effect.gen(function* () {
      const session = yield* opened
      const place = yield* Session.boundary(session)
      yield* Agent.runIn(session, "first")
      yield* Session.rewind(session, place)
      assert.deepStrictEqual([session.opened, yield* session.context.length, yield* committed], [false, 0, ""])
      const { transcript } = yield* Agent.runIn(session, "second")
      assert.deepStrictEqual(
        transcript.map(({ kind }) => kind),
        ["system", "user", "assistant"]
      )
    }).pipe(Effect.provide(layerScripted({ turns: ["One.", "Two."] })))
  )

  it.effect("owes the model the answers it was owed at the place, although they were given since", () =>
    Effect.gen(function* () {
      const session = yield* opened
      yield* Agent.runIn(session, "first", { limits: { toolCalls: 1 } })
      const place = yield* Session.boundary(session)
      assert.isDefined(place.owed)
      yield* Agent.runIn(session, "second")
      assert.isUndefined(session.owed)
      yield* Session.rewind(session, place)
      assert.strictEqual(session.owed, place.owed)
      assert.isUndefined(session.transcript.entries.at(-1)?.span)
      const { text, transcript } = yield* Agent.runIn(session, "third")
      assert.strictEqual(text, "Three.")
      assert.isTrue(transcript.every(({ span }) => span !== undefined))
    }).pipe(
      Effect.provideService(Approval, allowAll),
      Effect.provide(layerScripted({ turns: [`${add}\n${add}`, "Two.", "Three."] }))
    )
  )

  it.effect("refuses while the session runs a task, and does not ask the engine", () =>
    Effect.gen(function* () {
      const session = yield* opened
      const place = yield* Session.boundary(session)
      const handle = yield* Agent.startIn(session, "first")
      assert.match((yield* Effect.flip(Session.rewind(session, place))).message, /runs a task/)
      assert.match((yield* Effect.flip(Session.boundary(session))).message, /runs a task/)
      yield* handle.cancel
      yield* handle.outcome
      yield* Session.rewind(session, place)
      assert.strictEqual(yield* session.context.length, 0)
    }).pipe(Effect.provide(layerScripted({ turns: [{ text: "never", prefillMillis: 60_000 }] })))
  )

  it.effect("goes back behind an answer to a question, which is owed as before and asked no more", () =>
    Effect.gen(function* () {
      const session = yield* opened
      yield* Agent.runIn(session, "first")
      const place = yield* Session.boundary(session)
      const owed = JSON.stringify(place.owed?.answers)
      yield* Agent.answer(session, "Rome")
      yield* Session.rewind(session, place)
      assert.strictEqual(JSON.stringify(session.owed?.answers), owed)
      assert.notInclude(JSON.stringify([session.transcript.entries, session.owed?.turn.records[0]?.answer]), "Rome")
      assert.match((yield* Effect.flip(Agent.answer(session, "Paris"))).message, /has not asked anything/)
      const { text } = yield* Agent.runIn(session, "Paris")
      assert.strictEqual(text, "Rain in Paris.")
    }).pipe(
      Effect.provide(
        layerScripted({ turns: [call("clarify", { question: "Where?" }), "Sunny in Rome.", "Rain in Paris."] })
      )
    )
  )

  it.effect("refuses a place behind one that was gone back to, and a place of another session", () =>
    Effect.gen(function* () {
      const session = yield* opened
      const start = yield* Session.boundary(session)
      yield* Agent.runIn(session, "same")
      const later = yield* Session.boundary(session)
      yield* Session.rewind(session, start)
      yield* Agent.runIn(session, "same")
      const { length } = session.transcript.entries
      const gone = yield* Effect.flip(Session.rewind(session, later))
      assert.match(gone.message, /no longer part/)
      assert.strictEqual(session.transcript.entries.length, length)
      const other = yield* opened
      assert.match((yield* Effect.flip(Session.rewind(other, start))).message, /another session/)
    }).pipe(Effect.provide(layerScripted({ turns: ["One.", "One."] })))
  )
})
