/** Reads `--mcp-contracts FILE`: what is said about tools of MCP servers, in YAML or JSON, each problem with its line. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Stdio from "effect/Stdio"
import { type Document, isNode, LineCounter, parseDocument } from "yaml"
import { type ContractFile, type FormProblem, read as readForm } from "../tools/mcp/McpContractFile.ts"
import { problemText } from "../tools/mcp/McpTool.ts"
import { type UsageError, usage } from "./Ending.ts"
import { readText } from "./Inputs.ts"

const flag = "--mcp-contracts"

export interface Contracts {
  readonly file: ContractFile
  /** Problems as they are said: file, line, place, remedy. */
  readonly refuse: (problems: ReadonlyArray<FormProblem>) => Effect.Effect<never, UsageError>
}

/** The line of the innermost part of the path that is there. */
const lineOf = (document: Document, lines: LineCounter, path: FormProblem["path"]): number | undefined => {
  for (let end = path.length; end >= 0; end--) {
    const node = document.getIn(path.slice(0, end), true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
  }
  return undefined
}

const refusal = (path: string, document: Document, lines: LineCounter) => (problems: ReadonlyArray<FormProblem>) =>
  usage(
    problems
      .map((problem) => {
        const line = lineOf(document, lines, problem.path)
        return `${flag} ${path}${line === undefined ? "" : `:${line}`}: ${problemText(problem)}`
      })
      .join("\n")
  )

export const read = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Contracts, UsageError, Stdio.Stdio> {
  const text = yield* readText(flag, path)
  const lines = new LineCounter()
  // JSON is YAML; a key that is there twice is an error in both.
  const document = parseDocument(text, { uniqueKeys: true, lineCounter: lines })
  const [first] = document.errors
  if (first !== undefined) return yield* usage(`${flag} ${path}: it is neither YAML nor JSON: ${first.message}`)
  const refuse = refusal(path, document, lines)
  const file = readForm(document.toJS({ maxAliasCount: 100 }))
  return Result.isFailure(file) ? yield* refuse(file.failure) : { file: file.success, refuse }
})
