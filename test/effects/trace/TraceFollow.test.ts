import { appendFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { follow } from "../../../src/effects/trace/TraceFollow.ts"
import type { Item } from "../../../src/effects/trace/TraceReader.ts"
import { directory } from "../../kit/cli.ts"
import { good } from "../../kit/traces.ts"

const typeOf = (item: Item): string => (item._tag === "Event" ? item.record.event_type : "unreadable")

describe("following a trace", () => {
  it.live("gives events as they are written, also ones that are written in pieces, and ends with the run", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "trace.jsonl")
      const text = yield* good["final answer"]
      const bytes = Buffer.from(text)
      const lines = text.split("\n").filter((line) => line !== "")
      const half = lines[0]!.length + 1 + 20
      writeFileSync(path, bytes.subarray(0, half))
      const seen = yield* Queue.unbounded<string>()
      const following = Stream.runForEach(follow(path), (item) => Queue.offer(seen, typeOf(item)))
      const fiber = yield* Effect.forkChild(following)
      assert.strictEqual(yield* Queue.take(seen), "run_started")
      appendFileSync(path, bytes.subarray(half))
      appendFileSync(path, "not of this run\n")
      yield* Fiber.join(fiber)
      const rest = yield* Queue.takeAll(seen)
      assert.lengthOf(rest, lines.length - 1)
      assert.strictEqual(rest.at(-1), "run_completed")
    })
  )

  it.live("fails when the file becomes shorter, or is not there", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "trace.jsonl")
      const lines = (yield* good["final answer"]).split("\n")
      writeFileSync(path, `${lines[0]}\n${lines[1]}\n`)
      const seen = yield* Queue.unbounded<string>()
      const fiber = yield* Effect.forkChild(
        Effect.flip(Stream.runForEach(follow(path), (item) => Queue.offer(seen, typeOf(item))))
      )
      yield* Queue.take(seen)
      yield* Queue.take(seen)
      writeFileSync(path, "")
      assert.include((yield* Fiber.join(fiber)).message, "shorter")
      const missing = yield* Effect.flip(Stream.runDrain(follow(`${path}.no`)))
      assert.include(missing.message, "cannot be read")
    })
  )
})
