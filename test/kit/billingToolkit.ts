/**
 * The office's tools as threads load them, under a newer contract than the one that `open` advertises. The tool says that it
 * is there by a file in the workspace, and goes on when there is one called `go`.
 */
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { type Opening, open } from "./billing.ts"

/** What the threads' contract says that `open`'s does not. */
export const newer: Opening = { terms: () => ({ version: 2 }) }

export const registry = Effect.map(
  open({
    ...newer,
    act: Effect.fnUntraced(function* (_office, { order }) {
      const { settings } = yield* ToolContext
      const workspace = settings.workspace ?? ""
      yield* Effect.sync(() => writeFileSync(join(workspace, order), ""))
      while (!existsSync(join(workspace, "go"))) yield* Effect.sleep(5)
      return { invoice: `INV-${order}` }
    })
  }),
  (opened) => opened.registry
)
