import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fc from "fast-check"
import { type Claim, ToolPoolQueue } from "../../src/actors/ToolPoolQueue.ts"

const queueOf = (slots: number, perTool: number): ToolPoolQueue => {
  const queue = new ToolPoolQueue(perTool)
  for (let slot = 0; slot < slots; slot++) queue.add()
  return queue
}

/** Takes a slot in a fiber of its own and notes when it got it. */
const asks = (queue: ToolPoolQueue, claim: Claim, got: (waited: boolean) => void) =>
  Effect.forkChild(
    Effect.uninterruptibleMask((restore) =>
      Effect.map(queue.take(claim, restore), (waited) => {
        got(waited)
      })
    ),
    { startImmediately: true }
  )

describe("ToolPoolQueue", () => {
  it.effect("gives a free slot at once, and says whether a claim had to wait", () =>
    Effect.gen(function* () {
      const queue = queueOf(1, 1)
      const waits: Array<boolean> = []
      const claim = { run: "a", tool: "t" }
      yield* asks(queue, claim, (waited) => waits.push(waited))
      const second = yield* asks(queue, { run: "a", tool: "u" }, (waited) => waits.push(waited))
      assert.deepStrictEqual(waits, [false])
      queue.give(claim)
      yield* Fiber.join(second)
      assert.deepStrictEqual(waits, [false, true])
    })
  )

  it.effect("lets a run with one call overtake ninety-nine of another run", () =>
    Effect.gen(function* () {
      const queue = queueOf(1, 1)
      const order: Array<string> = []
      const fibers = []
      for (let index = 0; index < 100; index++) {
        fibers.push(yield* asks(queue, { run: "big", tool: "t" }, () => order.push(`big${index}`)))
      }
      fibers.push(yield* asks(queue, { run: "small", tool: "t" }, () => order.push("small")))
      for (let turn = 0; turn < 100; turn++) queue.give({ run: "", tool: "t" })
      yield* Fiber.joinAll(fibers)
      assert.isAtMost(order.indexOf("small"), 2)
      assert.deepStrictEqual(
        order.filter((name) => name !== "small"),
        Array.from({ length: 100 }, (_, index) => `big${index}`)
      )
    })
  )

  it.effect("keeps a slot for the others while all calls of one tool are stuck", () =>
    Effect.gen(function* () {
      const queue = queueOf(3, 2)
      const order: Array<string> = []
      for (let index = 0; index < 5; index++) {
        yield* asks(queue, { run: "a", tool: "stuck" }, () => order.push("stuck"))
      }
      for (let index = 0; index < 2; index++) {
        const fiber = yield* asks(queue, { run: "a", tool: "quick" }, () => order.push("quick"))
        yield* Fiber.join(fiber)
        queue.give({ run: "a", tool: "quick" })
      }
      assert.deepStrictEqual(order, ["stuck", "stuck", "quick", "quick"])
      assert.strictEqual(queue.waiting, 3)
    })
  )

  it.effect("survives any order of aborts: two, then one, and three gets its turn", () =>
    Effect.gen(function* () {
      const queue = queueOf(1, 1)
      const one = { run: "a", tool: "t" }
      yield* asks(queue, one, () => {})
      const two = yield* asks(queue, { run: "a", tool: "t" }, () => assert.fail("it was aborted"))
      let third = false
      const three = yield* asks(queue, { run: "a", tool: "t" }, () => {
        third = true
      })
      yield* Fiber.interrupt(two)
      queue.give(one)
      yield* Fiber.join(three)
      assert.isTrue(third)
      assert.strictEqual(queue.waiting, 0)
    })
  )

  it.effect("loses no slot to a claim that is interrupted in the moment it is served", () =>
    Effect.gen(function* () {
      const queue = queueOf(1, 1)
      const claim = { run: "a", tool: "t" }
      yield* asks(queue, claim, () => {})
      const waiting = yield* Effect.forkChild(
        Effect.uninterruptibleMask((restore) => queue.take(claim, restore)),
        { startImmediately: true }
      )
      waiting.interruptUnsafe()
      queue.give(claim)
      const exit = yield* Fiber.await(waiting)
      // Either it left without the slot, or it has it and gives it back.
      if (exit._tag === "Success") queue.give(claim)
      assert.strictEqual(queue.free, 1)
    })
  )

  it.effect("never hands out more than there is, and serves everybody who stays", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 4 }),
          fc.integer({ min: 1, max: 4 }),
          fc.array(
            fc.record({ run: fc.constantFrom("a", "b", "c"), tool: fc.constantFrom("t", "u"), leaves: fc.boolean() })
          ),
          (slots, perTool, claims) => Effect.runPromise(plays(slots, perTool, claims))
        ),
        { numRuns: 60 }
      )
    )
  )
})

/** Everybody holds for one turn; some leave while they wait. */
const plays = Effect.fnUntraced(function* (
  slots: number,
  perTool: number,
  claims: ReadonlyArray<Claim & { readonly leaves: boolean }>
) {
  const queue = queueOf(slots, perTool)
  const held = new Map<string, number>()
  let now = 0
  let served = 0
  const one = (claim: Claim) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        yield* queue.take(claim, restore)
        const ofTool = (held.get(claim.tool) ?? 0) + 1
        held.set(claim.tool, ofTool)
        assert.isAtMost(++now, slots)
        assert.isAtMost(ofTool, perTool)
        yield* Effect.yieldNow
        now--
        held.set(claim.tool, held.get(claim.tool)! - 1)
        served++
        queue.give(claim)
      })
    )
  const fibers = []
  for (const claim of claims)
    fibers.push([claim, yield* Effect.forkChild(one(claim), { startImmediately: true })] as const)
  for (const [{ leaves }, fiber] of fibers) if (leaves) yield* Fiber.interrupt(fiber)
  for (const [{ leaves }, fiber] of fibers) if (!leaves) yield* Fiber.join(fiber)
  assert.isAtLeast(served, claims.filter(({ leaves }) => !leaves).length)
  assert.strictEqual(queue.free, slots)
  assert.strictEqual(queue.waiting, 0)
})
