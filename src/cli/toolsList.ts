/** `writ tools list`: tools with what their contracts say, as a table or as JSON. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { RegisteredTool } from "../tools/Registry.ts"
import { inJson } from "./Ending.ts"
import { cut, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"
import { saysNothing } from "./ToolFindings.ts"
import { type ToolFlags, toolsOf } from "./Toolkits.ts"

const head = ["TOOL", "RISK", "LEDGER", "RETRY", "UNDO", "EVIDENCE", "SCOPES"]

/** A tool that reads owes nothing, and has nothing to undo. */
const rowOf = (tool: RegisteredTool): ReadonlyArray<string> => {
  const { evidence, functions, ledger, retry, reversible, risk, scopes } = tool.contract
  const all = functions.includes("needs") ? [...scopes, "by arguments"] : scopes
  const owed = risk === "read" ? ["-", "-", "-", "-"] : [ledger, retry, reversible ? "yes" : "no", evidence.source]
  return [cut(tool.name, 24), saysNothing(tool) ? `${risk}?` : risk, ...owed, all.length === 0 ? "-" : all.join(",")]
}

const document = ({ contract, hash, name, spec }: RegisteredTool) => ({
  name,
  description: spec.description,
  hash,
  risk: contract.risk,
  ledger: contract.ledger,
  retry: contract.retry,
  reversible: contract.reversible,
  evidence: contract.evidence,
  scopes: contract.scopes,
  stated: contract.stated
})

export const list = (flags: ToolFlags) =>
  Effect.gen(function* () {
    const { tools } = yield* toolsOf(flags)
    if (flags.json) return yield* Console.log(jsonText({ tools: tools.map(document) }))
    const { columns, line, paint } = yield* Screen.make(flags.color)
    const rows = tools.map(rowOf)
    const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]!.length)))
    const shown = (row: ReadonlyArray<string>) => {
      const text = row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at]!))).join("  ")
      return cut(text, columns)
    }
    line(paint.dim(shown(head)))
    for (const [at, row] of rows.entries())
      line(tools[at]!.contract.risk === "external" ? paint.yellow(shown(row)) : shown(row))
    if (tools.some(saysNothing)) line(paint.dim("\n? says nothing of itself, so the worst is assumed"))
    return undefined
  }).pipe(inJson(flags.json))
