/** A tool whose only effect is a row in the ledger's database, and what is found there afterwards. */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { type Staging, ToolContext } from "../../src/tools/ToolContext.ts"
import type { ToolError } from "../../src/tools/ToolError.ts"
import { acts } from "./contracts.ts"

/** No constraint keeps a row from being there twice: only the ledger does. */
export const table = "create table if not exists notes (n integer not null, call_key text not null)"

export const addRow = (n: number, key: string): Staging => ({
  sql: "insert into notes (n, call_key) values ($1, $2)",
  parameters: [n, key],
  rows: 1
})

export interface NoteOptions {
  /** Staged after the row. */
  readonly also?: (n: number) => ReadonlyArray<Staging>
  /** Stated otherwise. */
  readonly terms?: Partial<Contract.PlainTerms>
  /** What it does after it has staged. */
  readonly after?: (n: number) => Effect.Effect<void, ToolError, ToolContext>
}

/** `add_note`, with a key of its own for every `n`. */
export const noteTool = ({ also = () => [], terms = {}, after = () => Effect.void }: NoteOptions = {}) =>
  Registry.fromToolkit(
    Toolkit.make(
      acts(
        "local-write",
        Tool.make("add_note", {
          description: "Notes a number.",
          parameters: Schema.Struct({ n: Schema.Int }),
          success: Schema.String
        }),
        { ledger: "atomic", stages: true, key: ({ n }) => `note:${n}`, ...terms }
      )
    ),
    {
      add_note: Effect.fnUntraced(function* ({ n }) {
        const { settings, stage } = yield* ToolContext
        stage({ sql: table })
        stage(addRow(n, settings.idempotencyKey ?? ""))
        for (const statement of also(n)) stage(statement)
        yield* after(n)
        return `noted ${n}`
      })
    }
  )
