import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Agent from "../../src/effects/Agent.ts"
import { constraintOf } from "../../src/effects/Constraint.ts"
import * as RunDirectory from "../../src/effects/RunDirectory.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { qwen25 } from "../../src/engine/codecs/Qwen25.ts"
import type { ModelIdentity } from "../../src/engine/Model.ts"
import { registry as builtin } from "../../src/tools/builtin/index.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { directory } from "../kit/cli.ts"
import { lines } from "../kit/script.ts"

const tools = ["list_files", "read_text_file", "search_text", "calculate", "lookup", "write_artifact", "clarify"]
const task =
  "Read baseline.json and tuned.json, compute the relative improvement of score in percent and write report.md."
const system = "You are a small local assistant. Use the tools when they help and answer briefly."
const llama: ModelIdentity = { engine: "llama", name: "m", contextTokens: 100 }

describe("constrained decoding", () => {
  for (const constrained of [true, false]) {
    it.live(
      `the model that ships completes its task with calls ${constrained ? "held to a grammar" : "written freely"}, and the trace says so`,
      () =>
        Effect.gen(function* () {
          const home = yield* directory
          const workspace = join(home, "workspace")
          mkdirSync(workspace)
          writeFileSync(join(workspace, "baseline.json"), '{"run":"baseline_q4","score":0.612}')
          writeFileSync(join(workspace, "tuned.json"), '{"run":"tuned_q8","score":0.744}')
          const registry = yield* Effect.flatMap(builtin, (all) => Registry.pick(all, tools))
          const place = RunDirectory.at(join(home, "run"))
          const outcome = yield* Agent.run({
            task,
            system,
            tools: registry,
            constrained,
            settings: { workspace, fixtures: {} }
          }).pipe(
            Effect.provide(Wiring.layer({ runDirectory: () => place, ledger: "memory", sessions: 1, modelHash: false }))
          )
          assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "DONE 21.57%" })
          const events = lines(readFileSync(place.trace, "utf8"))
          const turns = events.filter(({ event_type: type }) => type === "model_call_started")
          assert.isNotEmpty(turns)
          for (const { data } of turns) assert.strictEqual(data["constrained"], constrained)
        }),
      240_000
    )
  }

  it.effect("is for engines and families that can do it, and where there is something to call", () =>
    Effect.gen(function* () {
      const registry = yield* Effect.flatMap(builtin, (all) => Registry.pick(all, ["calculate"]))
      const none = yield* Registry.make([])
      assert.isDefined(constraintOf(true, qwen25, registry, llama))
      assert.strictEqual(constraintOf(true, qwen25, registry, llama), constraintOf(true, qwen25, registry, llama))
      assert.isUndefined(constraintOf(false, qwen25, registry, llama))
      const { grammar: _, ...free } = qwen25
      assert.isUndefined(constraintOf(true, { ...free, id: "free" }, registry, llama))
      assert.isUndefined(constraintOf(true, qwen25, none, llama))
      assert.isUndefined(constraintOf(true, qwen25, registry, { ...llama, engine: "scripted" }))
    })
  )
})
