/** Directories of tools for tests, and a run of one of their calls. */
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layerInline, ToolPool } from "../../src/actors/ToolPool.ts"
import * as FileTools from "../../src/effects/FileTools.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import type { ToolSettings } from "../../src/tools/ToolContext.ts"
import { admitted } from "./toolCalls.ts"

/** A directory with these files: text as it is, anything else as JSON. Gone when the scope closes. */
export const directoryOf = (files: Readonly<Record<string, unknown>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const directory = fs.mkdtempSync(join(tmpdir(), "writ-tools-"))
      for (const [name, value] of Object.entries(files)) {
        fs.writeFileSync(join(directory, name), typeof value === "string" ? value : JSON.stringify(value))
      }
      return directory
    }),
    (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
  )

/** A tool file whose program is Node with this source; what is in `more` is said besides. */
export const scripted = (source: string, more: Readonly<Record<string, unknown>> = {}) => ({
  description: "A tool of a test.",
  parameters: { type: "object", properties: { text: { type: "string", description: "A text" } } },
  command: [process.execPath, "-e", source],
  ...more
})

export const reads = { contract: { risk: "read", touches: [] } }

/** Reads a directory as a run does. */
export const opened = (directory: string) => Effect.provide(FileTools.open(directory), NodeServices.layer)

/** One call of a tool of the directory, through the pool of a run. */
export const call = Effect.fnUntraced(function* (
  directory: string,
  name: string,
  args: JsonObject = {},
  options: { readonly deadlineMillis?: number; readonly settings?: Partial<ToolSettings> } = {}
) {
  const tools = yield* Effect.orDie(opened(directory))
  const settings = { fixtures: {}, ...options.settings }
  const pool = yield* Layer.build(tools.layer(layerInline()))
  const one = admitted(tools.registry, name, args, {
    settings,
    ...(options.deadlineMillis === undefined ? {} : { deadlineMillis: options.deadlineMillis })
  })
  return yield* Effect.flatMap(Effect.provide(ToolPool, pool), ({ run }) => run(one))
})
