import { EventEmitter } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type Thread, ToolThreads } from "../../src/actors/ToolThreads.ts"

class FakeThread extends EventEmitter implements Thread {
  readonly threadId: number

  constructor(threadId: number) {
    super()
    this.threadId = threadId
  }
}

/** A pool that does nothing by itself: the test moves its threads. */
class FakePool extends EventEmitter {
  threads: Array<FakeThread> = []
  readonly signals: Array<AbortSignal> = []

  run(_task: unknown, { signal }: { readonly signal: AbortSignal }): Promise<unknown> {
    this.signals.push(signal)
    return new Promise(() => {})
  }

  destroy(): Promise<void> {
    return Promise.resolve()
  }

  add(id: number, up: boolean): FakeThread {
    const thread = new FakeThread(id)
    this.threads.push(thread)
    if (up) this.emit("workerCreate", { id })
    return thread
  }

  remove(thread: FakeThread): void {
    this.threads = this.threads.filter((other) => other !== thread)
  }
}

const scene = () => {
  const pool = new FakePool()
  const watched = new ToolThreads(() => pool, 1)
  return { pool, watched, first: pool.add(1, true) }
}

describe("ToolThreads", () => {
  it.effect("is whole again only when the old thread has exited and the new one is up", () =>
    Effect.gen(function* () {
      const { first, pool, watched } = scene()
      yield* watched.whole
      pool.remove(first)
      pool.add(2, false)
      pool.emit("error", { id: 0 })
      const fiber = yield* Effect.forkChild(watched.whole, { startImmediately: true })
      first.emit("exit")
      assert.isUndefined(fiber.pollUnsafe())
      pool.emit("workerCreate", { id: 2 })
      yield* Fiber.join(fiber)
      assert.isFalse(watched.broken)
    })
  )

  it.effect("is broken when a thread exits and nothing takes its place, and then keeps nobody waiting", () =>
    Effect.gen(function* () {
      const { first, pool, watched } = scene()
      pool.remove(first)
      const fiber = yield* Effect.forkChild(watched.whole, { startImmediately: true })
      assert.isUndefined(fiber.pollUnsafe())
      first.emit("exit")
      yield* Fiber.join(fiber)
      assert.isTrue(watched.broken)
    })
  )

  it.effect("aborts an interrupted call at once, but not while the pool is being closed", () =>
    Effect.gen(function* () {
      const { pool, watched } = scene()
      for (const closing of [false, true]) {
        watched.closing = closing
        const fiber = yield* Effect.forkChild(watched.call(1), { startImmediately: true })
        yield* Fiber.interrupt(fiber)
      }
      assert.deepStrictEqual(
        pool.signals.map((signal) => signal.aborted),
        [true, false]
      )
    })
  )
})
