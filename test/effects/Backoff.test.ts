import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import * as Backoff from "../../src/effects/Backoff.ts"

/** Every step of a policy whose attempts all fail, from before the first one. */
const steps = (policy: Backoff.RetryPolicy, from: Backoff.BackoffState = { n: 0, d: 0 }) => {
  const found: Array<Extract<Backoff.Step, { _tag: "Wait" }>> = []
  let step = Backoff.next(from, policy)
  while (step._tag === "Wait") {
    found.push(step)
    step = Backoff.next(step.state, policy)
  }
  return found
}

const policies = fc
  .record({
    attempts: fc.integer({ min: 1, max: 12 }),
    delayMillis: fc.double({ min: 0.5, max: 5000, noNaN: true }),
    factor: fc.double({ min: 1.001, max: 3, noNaN: true })
  })
  .filter((policy) => Backoff.validate(policy).length === 0)

describe("Backoff", () => {
  it("goes (2,2), (3,4), (4,8) with four attempts doubling, and then escalates", () => {
    const policy = { attempts: 4, delayMillis: 1, factor: 2 }
    assert.deepStrictEqual(Backoff.next({ n: 2, d: 2 }, policy), {
      _tag: "Wait",
      state: { n: 3, d: 4 },
      delayMillis: 2
    })
    assert.deepStrictEqual(Backoff.next({ n: 3, d: 4 }, policy), {
      _tag: "Wait",
      state: { n: 4, d: 8 },
      delayMillis: 4
    })
    assert.deepStrictEqual(Backoff.next({ n: 4, d: 8 }, policy), { _tag: "Escalate" })
  })

  it("computes the series 1, 2, 4, 8 from a delay of 1 and waits for all but the last", () => {
    const found = steps({ attempts: 4, delayMillis: 1, factor: 2 })
    assert.deepStrictEqual(
      found.map(({ state }) => state.d),
      [1, 2, 4, 8]
    )
    assert.deepStrictEqual(
      found.map(({ delayMillis }) => delayMillis),
      [0, 1, 2, 4]
    )
  })

  it.effect("puts the attempts of the standard policy at 0, 1, 3 and 7 seconds", () =>
    Effect.gen(function* () {
      const at: Array<number> = []
      const failing = Effect.gen(function* () {
        let step = Backoff.next(Backoff.resume(0, Backoff.standard), Backoff.standard)
        while (step._tag === "Wait") {
          yield* Effect.sleep(step.delayMillis)
          at.push(yield* Clock.currentTimeMillis)
          step = Backoff.next(step.state, Backoff.standard)
        }
        return yield* Clock.currentTimeMillis
      })
      const fiber = yield* Effect.forkChild(failing, { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(fiber), 7000)
      assert.deepStrictEqual(at, [0, 1000, 3000, 7000])
    })
  )

  it("makes exactly as many attempts as the policy says, with waits that grow by the factor", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        const found = steps(policy)
        assert.strictEqual(found.length, policy.attempts)
        assert.strictEqual(found[0]!.delayMillis, 0)
        const waits = found.slice(1).map(({ delayMillis }) => delayMillis)
        if (waits.length > 0) assert.strictEqual(waits[0], policy.delayMillis)
        for (const [index, wait] of waits.slice(1).entries()) assert.strictEqual(wait, waits[index]! * policy.factor)
      })
    )
  })

  it("resumes after any number of attempts exactly where it would have been without the restart", () => {
    fc.assert(
      fc.property(policies, fc.nat(20), (policy, made) => {
        const state = Backoff.resume(made, policy)
        assert.strictEqual(state.n, Math.min(made, policy.attempts))
        assert.deepStrictEqual(steps(policy, state), steps(policy).slice(made))
      })
    )
  })

  it("escalates at once where the record already holds all attempts, or more", () => {
    for (const made of [4, 5, 1_000_000]) {
      assert.deepStrictEqual(Backoff.resume(made, Backoff.standard), { n: 4, d: 8000 })
      assert.strictEqual(Backoff.next(Backoff.resume(made, Backoff.standard), Backoff.standard)._tag, "Escalate")
    }
  })

  it("makes one attempt without a wait where the policy allows one", () => {
    const policy = { attempts: 1, delayMillis: 10, factor: 2 }
    assert.deepStrictEqual(Backoff.validate(policy), [])
    assert.strictEqual(steps(policy).length, 1)
  })

  it("accepts its standard policy and names what is wrong with another", () => {
    const { standard } = Backoff
    assert.deepStrictEqual(Backoff.validate(standard), [])
    for (const factor of [1, 0.5, 0, -2, Number.NaN, Infinity]) {
      assert.match(Backoff.validate({ ...standard, factor }).join(), /^the factor must be more than 1/)
    }
    for (const attempts of [0, -1, 1.5, Number.NaN, Infinity, 101]) {
      assert.match(Backoff.validate({ ...standard, attempts }).join(), /^attempts must be a whole number from 1 to 100/)
    }
    for (const delayMillis of [0, -1, Number.NaN, Infinity]) {
      assert.match(Backoff.validate({ ...standard, delayMillis }).join(), /^the delay must be more than 0 ms/)
    }
    assert.strictEqual(Backoff.validate({ attempts: 0, delayMillis: 0, factor: 1 }).length, 3)
  })

  it("refuses a policy whose last wait no timer can hold, and takes the longest that one can", () => {
    const longest = { attempts: 3, delayMillis: Backoff.maxDelayMillis / 2, factor: 2 }
    assert.deepStrictEqual(Backoff.validate(longest), [])
    assert.match(Backoff.validate({ ...longest, attempts: 4 }).join(), /the last wait would be longer/)
  })
})
