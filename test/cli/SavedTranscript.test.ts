import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { parse } from "yaml"
import { save } from "../../src/cli/SavedTranscript.ts"
import * as Agent from "../../src/effects/Agent.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { layerScripted } from "../../src/testing.ts"
import * as TestTools from "../kit/tools.ts"

const options: RunOptions = { context: { onFull: "compact" }, limits: { outputTokens: 16 } }

/** Three tasks in one session; how the last one ended, and how long the context is. */
const tasks = Effect.gen(function* () {
  const { registry } = yield* TestTools.make()
  const session = yield* Agent.session({ tools: registry, system: "S" })
  for (const task of ["one", "two"]) yield* Agent.runIn(session, `${task} ${"x".repeat(100)}`, options)
  const length = yield* session.context.length
  return { outcome: yield* Agent.runIn(session, `three ${"x".repeat(100)}`, options), length }
}).pipe(Effect.scoped)

describe("transcript.yaml", () => {
  it.live("keeps what a compaction removed, marked, with the marker at its place", () =>
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-transcript-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
      )
      const turns = ["1", "2", "3"]
      const { length } = yield* tasks.pipe(Effect.provide(layerScripted({ turns })))
      const { outcome } = yield* tasks.pipe(Effect.provide(layerScripted({ turns, contextTokens: length + 30 })))
      const path = join(directory, "transcript.yaml")
      const about = { model: "m", codec: "qwen2.5", tools: [] }
      assert.isUndefined(yield* save(path, outcome, about as never))
      const { messages } = parse(readFileSync(path, "utf8")) as {
        readonly messages: ReadonlyArray<Record<string, unknown>>
      }
      const said = messages.map(({ role, state }) => (state === undefined ? String(role) : `${role} ${state}`))
      const marker = said.indexOf("marker")
      assert.isAbove(marker, 1, said.join(", "))
      assert.deepStrictEqual([...new Set(said.slice(1, marker))], ["user dropped", "assistant dropped"])
      assert.deepStrictEqual(
        said.slice(marker).filter((one) => one.endsWith("dropped")),
        []
      )
      assert.strictEqual(messages[marker]?.["removed"], (marker - 1) / 2)
      assert.strictEqual(messages.filter(({ role }) => role === "user").length, 3)
    })
  )
})
