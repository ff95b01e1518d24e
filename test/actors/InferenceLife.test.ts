import { fork, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, describe } from "vitest"
import { makeEmbedder, type WorkerModel } from "../../src/actors/Inference.ts"
import { endOf, engineEntry } from "../../src/actors/InferenceHost.ts"
import type { EngineError } from "../../src/engine/EngineError.ts"
import type { GenerationEvent } from "../../src/engine/Generation.ts"
import {
  childrenOf,
  closing,
  ended,
  hits,
  isThere,
  log,
  long,
  often,
  open,
  opening,
  request,
  shipped,
  speak,
  strike,
  system,
  user
} from "../kit/engineLife.ts"
import { makeGguf } from "../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-life-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

describe("an engine in a process of its own", () => {
  let worker: WorkerModel
  const scope = Scope.makeUnsafe()
  beforeAll(
    () =>
      Effect.runPromise(
        Effect.map(Scope.provide(open(), scope), (made) => {
          worker = made
        })
      ),
    240_000
  )
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), 240_000)

  // What a crash does to a process and what the system does to it differ in the name only; both are seen.
  for (const [where, hit] of Object.entries(hits)) {
    for (const signal of where === "decode" ? (["SIGKILL", "SIGABRT"] as const) : (["SIGKILL"] as const)) {
      it.live(
        `is hit by ${signal} during ${where}: the call says so, and the session is at its boundary on another engine`,
        () =>
          Effect.gen(function* () {
            const session = yield* worker.model.session
            yield* session.commit([...system, ...user("hello")])
            const said = yield* speak(session)
            yield* session.keep(closing)
            yield* session.commit(user("again"))
            const before = yield* log(worker, session)
            let failed = yield* hit(worker, session, signal)
            // It may have been done before it was hit.
            for (let tries = 0; failed === undefined && tries < 20; tries++) {
              yield* session.rollback
              yield* session.rewind(before.length)
              failed = yield* hit(worker, session, signal)
            }
            assert.strictEqual(failed?.reason, "restarted")
            assert.include(failed?.message ?? "", signal)
            assert.strictEqual(yield* session.length, before.length)
            assert.deepStrictEqual(yield* log(worker, session), before)
            const recovered = session.recoveries?.().at(-1)
            assert.deepInclude(recovered, { cause: "crashed", tokens: before.length })
            yield* speak(session)
            yield* session.keep(closing)
            // What was committed is still a place to go back to, and the same is said there.
            yield* session.rewind(0)
            yield* session.commit([...system, ...user("hello")])
            assert.strictEqual(yield* speak(session), said)
          }),
        240_000
      )
    }
  }

  it.live(
    "dies between two calls: the next one finds the session as it was, and a turn that waited to be kept is gone",
    () =>
      Effect.gen(function* () {
        const session = yield* worker.model.session
        yield* session.commit([...system, ...user("hello")])
        yield* ended(yield* strike(worker, "SIGKILL"))
        yield* session.commit(user("more"))
        assert.strictEqual(session.recoveries?.().length, 1)
        yield* speak(session)
        yield* ended(yield* strike(worker, "SIGKILL"))
        assert.isAbove(yield* session.measure(long), 0)
        assert.strictEqual((yield* Effect.flip(session.keep(closing))).reason, "restarted")
        assert.strictEqual((yield* Effect.flip(session.keep(closing))).reason, "bad_request")
        yield* speak(session)
        yield* ended(yield* strike(worker, "SIGKILL"))
        yield* session.rollback
        yield* session.commit(user("x"))
      }),
    240_000
  )

  it.live(
    "does not bring a session back that was closed",
    () =>
      Effect.gen(function* () {
        const session = yield* Effect.scoped(worker.model.session)
        assert.strictEqual((yield* Effect.flip(session.commit(system))).reason, "bad_request")
        yield* ended(yield* strike(worker, "SIGKILL"))
        assert.strictEqual((yield* Effect.flip(session.commit(system))).reason, "bad_request")
      }),
    240_000
  )

  it.live(
    "dies with two sessions at work: both come back, each to its own log",
    () =>
      Effect.gen(function* () {
        const sessions = yield* Effect.all([worker.model.session, worker.model.session])
        const logs = yield* Effect.forEach(sessions, (session, at) =>
          Effect.andThen(session.commit([...system, ...user(`hello ${at}`)]), log(worker, session))
        )
        const alone = yield* Effect.forEach(sessions, (session) =>
          Effect.ensuring(speak(session), Effect.ignore(session.rollback))
        )
        const seen = yield* Queue.unbounded<GenerationEvent>()
        const fibers = yield* Effect.forEach(sessions, (session) =>
          Effect.forkChild(
            Effect.flip(
              Stream.runForEach(
                session.turn(
                  opening,
                  request({ maxTokens: 600, sampling: { ...request().sampling, temperature: 2, topK: 0 } })
                ),
                (event) => Queue.offer(seen, event)
              )
            )
          )
        )
        while ((yield* Queue.take(seen))._tag !== "Piece") {
          // not decoding yet
        }
        yield* strike(worker, "SIGKILL")
        for (const fiber of fibers) {
          const exit = yield* Fiber.await(fiber)
          if (Exit.isSuccess(exit)) assert.strictEqual(exit.value.reason, "restarted")
        }
        for (const session of sessions) yield* session.rollback
        assert.deepStrictEqual(yield* Effect.forEach(sessions, (session) => log(worker, session)), logs)
        assert.deepStrictEqual(yield* Effect.forEach(sessions, speak, { concurrency: 2 }), alone)
      }),
    240_000
  )

  it.live(
    "says the same as one in a thread, and leaves nothing behind when its scope is closed",
    () =>
      Effect.gen(function* () {
        const said = Effect.fnUntraced(function* (isolation: "thread" | "process") {
          const opened = yield* open({ isolation })
          const session = yield* opened.model.session
          yield* session.commit([...system, ...user("What is 2 + 2?")])
          const { pid } = yield* opened.host
          return { answer: yield* speak(session), pid, tokens: yield* log(opened, session) }
        }, Effect.scoped)
        const [thread, process] = yield* Effect.all([said("thread"), said("process")], { concurrency: 2 })
        assert.deepStrictEqual(process, { ...thread, pid: process.pid })
        assert.isUndefined(thread.pid)
        assert.isFalse(isThere(process.pid!))
      }),
    240_000
  )
})

describe("a program that is killed", () => {
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    it.live(
      `leaves no engine: ${signal} while it generates`,
      () =>
        Effect.gen(function* () {
          const modelPath = Path.join(directory, "endless.gguf")
          Fs.writeFileSync(modelPath, makeGguf({ muteEog: true }))
          const program = Path.resolve(import.meta.dirname, "../kit/engineOrphan.ts")
          const host = spawn(process.execPath, [program, modelPath], { stdio: ["ignore", "pipe", "inherit"] })
          const pid = yield* Effect.callback<number>((resume) => {
            host.stdout.once("data", (said) => resume(Effect.succeed(Number(said))))
          })
          assert.isTrue(isThere(pid))
          host.kill(signal)
          yield* ended(pid)
          yield* ended(host.pid!)
        }),
      240_000
    )
  }
})

describe("a process of an engine", () => {
  it.live(
    "whose program is not there any more is ended, also where nothing tells it so",
    () =>
      Effect.gen(function* () {
        // It is told that somebody else started it, and its channel stays open.
        const child = fork(fileURLToPath(engineEntry()), ["1"], { execArgv: [], serialization: "advanced" })
        const signal = yield* Effect.callback<string | null>((resume) => {
          child.once("exit", (_, by) => resume(Effect.succeed(by)))
        })
        assert.strictEqual(signal, "SIGKILL")
      }),
    240_000
  )
})

describe("an engine that dies", () => {
  it.live(
    "is opened again as often as the limits say, and then every call says why not",
    () =>
      Effect.gen(function* () {
        const worker = yield* open({ restarts: { times: 1, waitMillis: 1 } })
        const session = yield* worker.model.session
        yield* session.commit(system)
        yield* ended(yield* strike(worker, "SIGKILL"))
        yield* session.commit(user("hello"))
        yield* ended(yield* strike(worker, "SIGKILL"))
        for (const call of [Effect.asVoid(session.commit(user("x"))), Effect.asVoid(worker.model.tokenize(long))]) {
          const { message, reason } = yield* Effect.flip(call)
          assert.strictEqual(reason, "lost")
          assert.match(message, /SIGKILL.*opened again 1 time within 600 s/)
        }
        assert.strictEqual(session.recoveries?.().length, 1)
      }),
    240_000
  )

  it.live(
    "and finds a damaged file, or another one, fails as that",
    () =>
      Effect.gen(function* () {
        const bytes = Fs.readFileSync(shipped)
        for (const [name, after] of [
          ["damaged", bytes.subarray(0, bytes.length / 2)],
          ["none", undefined]
        ] as const) {
          const modelPath = Path.join(directory, `${name}.gguf`)
          Fs.writeFileSync(modelPath, bytes)
          const worker = yield* open({ modelPath })
          const session = yield* worker.model.session
          yield* session.commit(system)
          // Its own copy is mapped: what it sees does not change.
          Fs.rmSync(modelPath)
          if (after !== undefined) Fs.writeFileSync(modelPath, after)
          yield* strike(worker, "SIGKILL")
          const failed = yield* Effect.flip(session.commit(user("hello")))
          assert.strictEqual(failed.reason, after === undefined ? "missing_file" : "bad_file")
          assert.match(failed.message, /SIGKILL.*cannot be opened again/)
        }
      }),
    240_000
  )

  it.live(
    "lets go of a caller that does not wait for its restart, and of everything when it is closed meanwhile",
    () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const worker = yield* Scope.provide(open({ restarts: { times: 3, waitMillis: 3_600_000 } }), scope)
        const session = yield* Scope.provide(worker.model.session, scope)
        yield* session.commit(system)
        const pid = yield* strike(worker, "SIGKILL")
        yield* ended(pid)
        const waiting = yield* Effect.forkChild(session.commit(user("x")), { startImmediately: true })
        yield* Fiber.interrupt(waiting)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(waiting)))
        const other = yield* Effect.forkChild(Effect.flip(session.commit(user("x"))), { startImmediately: true })
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* Fiber.join(other)).reason, "lost")
      }),
    240_000
  )

  it.live(
    "while it is being opened again and closed meanwhile leaves no process",
    () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const started: Array<number> = []
        const worker = yield* Scope.provide(open(), scope)
        started.push(yield* strike(worker, "SIGKILL"))
        yield* ended(started[0]!)
        // The next one has its number before it is open.
        while (childrenOf(process.pid).length === 0) yield* Effect.sleep("5 millis")
        const children = childrenOf(process.pid)
        yield* Scope.close(scope, Exit.void)
        assert.isAtLeast(children.length, 1)
        for (const child of children) yield* ended(child)
      }),
    240_000
  )

  it.live(
    "because nothing in it moves any more is ended, and its sessions come back",
    () =>
      Effect.gen(function* () {
        const worker = yield* open({ stallSeconds: 6 })
        const session = yield* worker.model.session
        yield* session.commit(system)
        const pid = yield* strike(worker, "SIGSTOP")
        const failed = yield* Effect.flip(session.commit(user("hello")))
        assert.strictEqual(failed.reason, "restarted")
        assert.include(failed.message, "not answered for 6 s")
        assert.isFalse(isThere(pid))
        yield* session.commit(user("hello"))
        assert.deepInclude(session.recoveries?.()[0], { cause: "stalled", restarts: 1 })
      }),
    240_000
  )

  it.live(
    "as a thread, of a fault that nobody awaited, comes back likewise",
    () =>
      Effect.gen(function* () {
        const worker = yield* open({ isolation: "thread" })
        const session = yield* worker.model.session
        yield* session.commit([...system, ...user("hello")])
        const said = yield* speak(session)
        yield* session.rollback
        const before = yield* log(worker, session)
        const seen = yield* Queue.unbounded<GenerationEvent>()
        const turn = session.turn(
          opening,
          request({ maxTokens: 600, sampling: { ...request().sampling, temperature: 2, topK: 0 } })
        )
        const fiber = yield* Effect.forkChild(Effect.flip(Stream.runForEach(turn, (event) => Queue.offer(seen, event))))
        while ((yield* Queue.take(seen))._tag !== "Piece") {
          // not decoding yet
        }
        // No message of the protocol: the thread's listener throws.
        ;(yield* worker.host).post([0, null])
        assert.strictEqual((yield* Fiber.join(fiber)).reason, "restarted")
        assert.deepStrictEqual(yield* log(worker, session), before)
        assert.strictEqual(yield* speak(session), said)
      }),
    240_000
  )

  it.live(
    "as a thread that cannot be ended is left behind, once; after that a process is advised",
    () =>
      Effect.gen(function* () {
        const modelPath = Path.join(directory, "slow.gguf")
        Fs.writeFileSync(modelPath, makeGguf({ muteEog: true, dim: 128, ff: 512, layers: 4 }))
        const worker = yield* open({ isolation: "thread", modelPath })
        const session = yield* worker.model.session
        yield* session.commit(long)
        let abandoned = 0
        let failed: EngineError | undefined
        while (abandoned < 2) {
          const host = yield* worker.host
          const seen = yield* Queue.unbounded<GenerationEvent>()
          const turn = session.turn(opening, request({ maxTokens: 3000 }))
          const fiber = yield* Effect.forkChild(
            Effect.flip(Stream.runForEach(turn, (event) => Queue.offer(seen, event)))
          )
          while ((yield* Queue.take(seen))._tag !== "Piece") {
            // not decoding yet
          }
          host.condemn(endOf("stalled", "It does not move."))
          failed = yield* Fiber.join(fiber)
          // Between two native calls a thread can be ended like a process.
          if (host.abandoned()) abandoned++
          if (abandoned < 2) assert.strictEqual(failed.reason, "restarted")
        }
        assert.strictEqual(failed?.reason, "lost")
        assert.match(failed?.message ?? "", /does not move.*isolation process/)
      }),
    240_000
  )

  it.live(
    "while it makes vectors makes them again",
    () =>
      Effect.gen(function* () {
        const there = yield* makeEmbedder({
          modelPath: shipped,
          threads: 1,
          gpu: false,
          isolation: "process",
          restarts: often
        })
        const first = yield* there.embed(["It is 5."])
        for (const child of childrenOf(process.pid)) process.kill(child, "SIGKILL")
        assert.deepStrictEqual(yield* there.embed(["It is 5."]), first)
      }),
    240_000
  )
})
