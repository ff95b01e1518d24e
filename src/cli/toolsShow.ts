/** `writ tools show NAME`: all of one tool's contract, which of it is assumed, which terms are functions, and its schema. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { type Contract, cautious } from "../tools/Contract.ts"
import type { RegisteredTool } from "../tools/Registry.ts"
import { inJson } from "./Ending.ts"
import { block, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"
import { saysNothing } from "./ToolFindings.ts"
import { type ToolFlags, toolNamed, toolsOf } from "./Toolkits.ts"
import { folded } from "./toolsCheck.ts"

export interface ShowFlags extends ToolFlags {
  readonly name: string
}

const ledgers: Readonly<Record<Contract["ledger"], string>> = {
  atomic: "it happens together with its entry, or not at all",
  external: "the other side honours the key",
  observe: "after a lost answer it is looked for",
  none: "nothing keeps it from happening twice"
}

/** Terms that have a default, and have it here because the tool does not speak of them. */
const assumedIn = (tool: RegisteredTool): ReadonlyArray<keyof Contract> => {
  const { contract } = tool
  const defaults = cautious({ risk: contract.risk })
  const said = contract.stated && contract.risk !== "read"
  const owed = ["ledger", "retry", "reversible", "evidence"] as const
  const optional = ["scopes", "settle", "compensation", "version", "deadlineMillis", "terminable"] as const
  const same = (key: keyof Contract) => JSON.stringify(contract[key]) === JSON.stringify(defaults[key])
  return [...(saysNothing(tool) ? (["risk"] as const) : []), ...(said ? [] : owed), ...optional].filter(same)
}

type Row = readonly [name: string, term: keyof Contract | undefined, value: string]

const postOf = ({ contract, terms }: RegisteredTool): string => {
  if (terms.post !== undefined) return "looked at after the call (a function)"
  return contract.functions.includes("post") ? "the shape of its result" : "none"
}

const keyOf = ({ contract, terms }: RegisteredTool): string => {
  const named = terms.key === undefined ? "by run, turn and call" : "by what the contract names (a function)"
  return contract.keyParameter === undefined ? named : `${named}, handed over as ${contract.keyParameter}`
}

const rowsOf = (tool: RegisteredTool): ReadonlyArray<Row> => {
  const { contract } = tool
  const { compensation, deadlineMillis, evidence, functions, ledger, scopes, settle, terminable, version } = contract
  const byArguments = functions.includes("needs") ? "; more by arguments (a function)" : ""
  return [
    ["risk", "risk", contract.risk],
    ["ledger", "ledger", `${ledger}: ${ledgers[ledger]}`],
    ["retry", "retry", contract.retry],
    ["undo", "reversible", contract.reversible ? "what it does can be undone" : "what it does cannot be undone"],
    ["undone by", "compensation", compensation ?? "-"],
    ["evidence", "evidence", `${evidence.source}: ${evidence.describes}`],
    ["promise", undefined, postOf(tool)],
    [
      "settles",
      "settle",
      settle === undefined ? "at once" : `looked at every ${settle.everyMillis} ms for ${settle.withinMillis} ms`
    ],
    ["scopes", "scopes", `${scopes.length === 0 ? "none" : scopes.join(", ")}${byArguments}`],
    ["key", undefined, keyOf(tool)],
    ["deadline", "deadlineMillis", deadlineMillis === undefined ? "the run's own" : `${deadlineMillis} ms`],
    ["runs in", undefined, placeOf(tool)],
    ["can be cut", "terminable", terminable ? "yes, what it runs in may be ended" : "no, it finishes on its own"],
    ["version", "version", String(version)],
    ...(contract.polling ? [["polling", undefined, "may be asked the same again and again"] as const] : []),
    ...(contract.asksUser ? [["asks", undefined, "a call ends the run with a question to the user"] as const] : []),
    ["functions", undefined, functions.length === 0 ? "none" : functions.join(", ")],
    ["hash", undefined, tool.hash]
  ]
}

/** What is around a running call. */
const placeOf = ({ contract }: RegisteredTool): string =>
  contract.isolation === "process"
    ? "a process: what it does to itself ends nothing else"
    : "a thread of the program, which is ended when a call outlives its deadline"

const document = (tool: RegisteredTool) => ({
  name: tool.name,
  description: tool.spec.description,
  hash: tool.hash,
  contract: {
    ...tool.contract,
    settle: tool.contract.settle ?? null,
    compensation: tool.contract.compensation ?? null,
    keyParameter: tool.contract.keyParameter ?? null,
    deadlineMillis: tool.contract.deadlineMillis ?? null,
    isolation: tool.contract.isolation ?? "thread"
  },
  assumed: assumedIn(tool),
  parameters: tool.spec.parameters
})

export const show = (flags: ShowFlags) =>
  Effect.gen(function* () {
    const tool = yield* toolNamed(yield* toolsOf(flags), flags.name)
    if (flags.json) return yield* Console.log(jsonText(document(tool)))
    const { columns, line, paint } = yield* Screen.make(flags.color)
    const assumed = assumedIn(tool)
    const margin = " ".repeat(12)
    line(paint.bold(inline(tool.name)))
    for (const text of folded(tool.spec.description, "", columns)) line(text)
    if (saysNothing(tool)) line(paint.yellow("It says nothing of itself, so the worst is assumed."))
    line()
    for (const [name, term, value] of rowsOf(tool)) {
      const note = term !== undefined && assumed.includes(term) ? " (assumed)" : ""
      const [first = "", ...rest] = folded(`${value}${note}`, margin, columns)
      line(`${paint.dim(name.padEnd(11))} ${first.slice(margin.length)}`)
      for (const text of rest) line(text)
    }
    line(`\n${paint.dim("arguments")}`)
    line(block(JSON.stringify(tool.spec.parameters, undefined, 2)))
    return undefined
  }).pipe(inJson(flags.json))
