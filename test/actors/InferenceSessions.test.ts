import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import { endOf, type Host } from "../../src/actors/InferenceHost.ts"
import type { Client, Link } from "../../src/actors/InferenceLink.ts"
import { openSession, type Places } from "../../src/actors/InferenceSessions.ts"
import type { EngineError } from "../../src/engine/EngineError.ts"
import { text } from "../../src/engine/Prompt.ts"
import { SessionWait } from "../../src/engine/SessionWait.ts"
import { ended, log, open, opening, request, speak, strike, system, user } from "../kit/engineLife.ts"
import { makeGguf } from "../kit/gguf.ts"

const minutes = 240_000
const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-sessions-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

/** An engine that is only its sessions: which are open, and whether opening one is answered. */
const engineOf = (opened: Effect.Effect<void> = Effect.void) => {
  const there = new Set<number>()
  let next = 1
  const client = {
    SessionOpen: () =>
      Effect.map(opened, () => {
        there.add(next)
        return next++
      }),
    Restore: () => Effect.void,
    SessionClose: ({ session }: { readonly session: number }) => Effect.sync(() => void there.delete(session))
  }
  const host = { end: undefined } as Host
  const link = { host, client: client as unknown as Client, restarts: 0, call: (call: unknown) => call } as Link
  return { link, there, dies: () => Object.assign(host, { end: endOf("crashed", "It died.") }) }
}

describe("a session of an engine that is being opened again", () => {
  it.effect("and that is closed in the moment it gets its new place gives that back too", () =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<void>()
      const [first, second] = [engineOf(), engineOf(Deferred.await(answer))]
      let present = first
      const places: Places = { most: 1, taken: 0 }
      const scope = yield* Scope.make()
      const session = yield* Scope.provide(
        openSession(
          Effect.sync(() => present.link),
          places
        ),
        scope
      )
      first.dies()
      present = second
      const calling = yield* Effect.forkChild(Effect.flip(session.commit([])), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      yield* Deferred.succeed(answer, undefined)
      assert.strictEqual((yield* Fiber.join(calling)).reason, "bad_request")
      assert.deepStrictEqual([second.there.size, places.taken], [0, 0])
    })
  )

  for (const [what, call] of [
    ["saved", (session) => session.save("x", "x")],
    ["loaded", (session) => session.load("x")]
  ] satisfies ReadonlyArray<
    readonly [string, (session: Effect.Success<ReturnType<typeof openSession>>) => Effect.Effect<unknown, EngineError>]
  >) {
    it.effect(`lets go of whoever wanted it ${what} and does not wait for that`, () =>
      Effect.gen(function* () {
        const first = engineOf()
        let present: Effect.Effect<Link> = Effect.succeed(first.link)
        const session = yield* openSession(
          Effect.suspend(() => present),
          { most: 1, taken: 0 }
        )
        first.dies()
        present = Effect.never
        const waiting = yield* Effect.forkChild(call(session), { startImmediately: true })
        yield* Fiber.interrupt(waiting)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(waiting)))
      })
    )
  }

  it.effect("whose opening failed has no place", () =>
    Effect.gen(function* () {
      const places: Places = { most: 1, taken: 0 }
      const waiting = yield* Effect.forkChild(Effect.scoped(openSession(Effect.never, places)), {
        startImmediately: true
      })
      assert.strictEqual(places.taken, 1)
      assert.strictEqual(
        (yield* Effect.flip(Effect.scoped(openSession(Effect.succeed(engineOf().link), places)))).reason,
        "no_session"
      )
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(places.taken, 0)
    })
  )
})

describe("sessions of an engine", () => {
  it.live(
    "that died keep their places: nobody else gets one before they have come back",
    () =>
      Effect.gen(function* () {
        const worker = yield* open({ sequences: 1 })
        const scope = yield* Scope.make()
        const session = yield* Scope.provide(worker.model.session, scope)
        yield* session.commit([...system, ...user("hello")])
        const before = yield* log(worker, session)
        yield* ended(yield* strike(worker, "SIGKILL"))
        assert.strictEqual((yield* Effect.flip(Effect.scoped(worker.model.session))).reason, "no_session")
        const wait = { priority: 3, seconds: 600 } as const
        const waiting = yield* Effect.forkChild(Effect.provideService(worker.model.session, SessionWait, wait), {
          startImmediately: true
        })
        assert.deepStrictEqual(yield* log(worker, session), before)
        yield* session.commit(user("more"))
        yield* Scope.close(scope, Exit.void)
        yield* (yield* Fiber.join(waiting)).commit(system)
      }),
    minutes
  )

  it.live(
    "may be given nothing to evaluate, and go on",
    () =>
      Effect.gen(function* () {
        const worker = yield* open({ isolation: "thread" })
        const session = yield* worker.model.session
        for (const nothing of [[], [text("")]]) {
          const { end } = yield* session.commit(system)
          assert.deepStrictEqual(yield* session.commit(nothing), { start: end, end })
          assert.strictEqual(yield* session.length, end)
        }
        yield* speak(session)
        yield* session.keep([])
        yield* session.commit(user("hello"))
      }),
    minutes
  )

  it.live(
    "that are closed while a turn of theirs runs elsewhere tell whoever reads it",
    () =>
      Effect.gen(function* () {
        const modelPath = Path.join(directory, "endless.gguf")
        Fs.writeFileSync(modelPath, makeGguf({ muteEog: true }))
        const worker = yield* open({ isolation: "thread", sequences: 1, modelPath })
        const ended = Effect.gen(function* () {
          const scope = yield* Scope.make()
          const session = yield* Scope.provide(worker.model.session, scope)
          yield* session.commit(system)
          const seen = yield* Deferred.make<void>()
          const turn = session.turn(opening, request({ maxTokens: 1_500 }))
          const reading = yield* Effect.forkChild(Stream.runForEach(turn, () => Deferred.succeed(seen, undefined)))
          yield* Deferred.await(seen)
          yield* Scope.close(scope, Exit.void)
          return yield* Effect.result(Fiber.join(reading))
        })
        // It may have come to its end before it was closed.
        let found = yield* ended
        while (found._tag === "Success") found = yield* ended
        assert.deepInclude(found.failure, { reason: "bad_request", message: "The session is closed." })
        yield* (yield* worker.model.session).commit(system)
      }),
    minutes
  )
})
