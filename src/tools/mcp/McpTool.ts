/** Makes tools of what an MCP server lists: named, contracted, checked like any other. What cannot be one is refused by name. */
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { boundedCheck } from "../BoundedCheck.ts"
import type { JsonObject } from "../JsonText.ts"
import { nearest } from "../Nearest.ts"
import { dynamic, type RegisteredTool } from "../Registry.ts"
import { ToolError } from "../ToolError.ts"
import { resultOf } from "./McpContent.ts"
import { type Statement, statementOf } from "./McpContract.ts"
import { type FormProblem, placeOf, type ServerForm } from "./McpContractFile.ts"
import type { Descriptor, RefusedTool } from "./McpDescriptor.ts"
import { registeredName } from "./McpNames.ts"
import { compile as compileOutput } from "./McpOutput.ts"

/** One tool that is offered. */
export interface McpTool {
  readonly descriptor: Descriptor
  readonly registered: RegisteredTool
  readonly source: Statement["source"]
}

export interface McpTools {
  readonly tools: ReadonlyArray<McpTool>
  readonly refused: ReadonlyArray<RefusedTool>
  /** What is wrong in the contract file, each with its place there. */
  readonly problems: ReadonlyArray<FormProblem>
}

/** A call that the server did not answer with a result. */
export interface CallFailure {
  readonly kind: ToolError["kind"]
  readonly message: string
  /** It may have reached the tool. */
  readonly sent: boolean
}

/** Sends one call to the server that has the tool. */
export type Call = (descriptor: Descriptor, args: JsonObject) => Effect.Effect<McpSchema.CallToolResult, CallFailure>

const registeredTool = Effect.fnUntraced(function* (
  server: string,
  descriptor: Descriptor,
  statement: Statement,
  call: Call
): Effect.fn.Return<RegisteredTool, string> {
  const name = registeredName(server, descriptor.name)
  const { inputSchema, outputSchema } = descriptor
  const check =
    outputSchema === undefined
      ? undefined
      : yield* Effect.mapError(compileOutput(outputSchema), (reason) => `its output schema is refused: ${reason}`)
  const reading = { tool: name, check, failure: statement.failure }
  const reads = statement.contract?.risk === "read"
  const failed = ({ kind, message, sent }: CallFailure) =>
    new ToolError({ kind, message, effect: sent && !reads ? "unknown" : "none" })
  const tool = yield* dynamic({
    name,
    description: descriptor.description,
    schema: inputSchema,
    ...(statement.contract === undefined ? {} : { contract: statement.contract }),
    ...(statement.terms === undefined ? {} : { terms: statement.terms }),
    run: (args) =>
      Effect.flatMap(Effect.mapError(call(descriptor, args), failed), (result) => resultOf(result, reading))
  }).pipe(Effect.mapError(({ message }) => message))
  return boundedCheck(tool)
})

/** Tools that the file names and the server does not have. */
const unknownIn = (
  server: string,
  descriptors: ReadonlyArray<Descriptor>,
  refused: ReadonlyArray<RefusedTool>,
  form: ServerForm | undefined
): ReadonlyArray<FormProblem> => {
  const names = descriptors.map(({ name }) => name)
  const listed = new Set([...names, ...refused.map(({ name }) => name)])
  return Object.keys(form?.tools ?? {})
    .filter((name) => !listed.has(name))
    .map((name) => {
      const near = nearest(name, names)
      const hint = near === undefined ? `it has ${names.join(", ") || "none"}` : `did you mean "${near}"?`
      return { path: ["servers", server, "tools", name], message: `the server has no such tool; ${hint}` }
    })
}

/** All tools of one server. */
export const toolsOf = Effect.fnUntraced(function* (
  server: string,
  list: { readonly tools: ReadonlyArray<Descriptor>; readonly refused: ReadonlyArray<RefusedTool> },
  form: ServerForm | undefined,
  call: Call
): Effect.fn.Return<McpTools> {
  const tools: Array<McpTool> = []
  const refused = [...list.refused]
  const problems = [...unknownIn(server, list.tools, list.refused, form)]
  const taken = new Set<string>()
  for (const descriptor of list.tools) {
    const said = statementOf(server, descriptor, form)
    problems.push(...said.problems)
    if (said.statement.hidden || said.problems.length > 0) continue
    const made = yield* Effect.result(registeredTool(server, descriptor, said.statement, call))
    if (Result.isFailure(made)) {
      // What the file says can be put right there; what the server says cannot.
      const path = ["servers", server, ...(said.statement.source === "file" ? ["tools", descriptor.name] : ["default"])]
      const ofFile = said.statement.source.startsWith("file") && !/schema/.test(made.failure)
      if (ofFile) problems.push({ path, message: made.failure })
      else refused.push({ name: descriptor.name, reason: made.failure })
      continue
    }
    const { name } = made.success
    if (taken.has(name)) {
      refused.push({ name: descriptor.name, reason: `another tool of this server is called ${name} already` })
      continue
    }
    taken.add(name)
    tools.push({ descriptor, registered: made.success, source: said.statement.source })
  }
  return { tools, refused, problems }
})

/** A problem of a contract file in one line. */
export const problemText = ({ message, path }: FormProblem): string => `${placeOf(path) || "the file"}: ${message}`
