/**
 * The contract of one tool of an MCP server: the worst kind, unless the contract file says otherwise. What the server hints at
 * is the word of a stranger: it makes nothing milder, except where the file says to trust it.
 */
import * as Result from "effect/Result"
import type { Contract } from "../Contract.ts"
import type { Json, JsonObject } from "../JsonText.ts"
import type { Terms } from "../Terms.ts"
import type { EffectClaim } from "../ToolCall.ts"
import type { FormProblem, ServerForm, ToolForm } from "./McpContractFile.ts"
import type { Descriptor } from "./McpDescriptor.ts"
import * as Template from "./McpTemplate.ts"

export interface Statement {
  /** Absent: nothing is said, and the worst is assumed. */
  readonly contract: Partial<Contract> | undefined
  readonly terms: Terms<JsonObject, Json> | undefined
  readonly failure: EffectClaim
  readonly hidden: boolean
  /** Where what is said comes from. */
  readonly source: "nobody" | "hints" | "file" | "file default"
}

type Path = ReadonlyArray<string | number>

const templateOf = (
  text: string,
  parameters: JsonObject,
  path: Path,
  problems: Array<FormProblem>
): Template.Template => {
  const read = Template.read(text)
  const message = Result.isFailure(read) ? read.failure : Template.problemWith(read.success, parameters)
  if (message !== undefined) problems.push({ path, message })
  return Result.getOrElse(read, () => [])
}

/** The functions among the terms, made of templates and numbers. */
const termsOf = (
  form: ToolForm,
  { inputSchema }: Descriptor,
  path: Path,
  problems: Array<FormProblem>
): Terms<JsonObject, Json> => {
  const touches = form.touches?.map(({ resource, verb }, at) => ({
    verb,
    template: templateOf(resource, inputSchema, [...path, "touches", at, "resource"], problems)
  }))
  const key = form.key === undefined ? undefined : templateOf(form.key, inputSchema, [...path, "key"], problems)
  const { cost, hazard, post } = form
  return {
    ...(touches === undefined
      ? {}
      : {
          touches: (args) =>
            touches.flatMap(({ template, verb }) =>
              Template.fill(template, args).map((resource) => ({ verb, resource }))
            )
        }),
    ...(key === undefined ? {} : { key: (args) => Template.fill(key, args).join(",") }),
    ...(cost === undefined ? {} : { cost: () => cost }),
    ...(hazard === undefined ? {} : { hazard: () => hazard }),
    ...(post === undefined ? {} : { post })
  }
}

const plainOf = (form: ToolForm): Partial<Contract> => {
  const { cost, failure, hazard, hidden, key, post, touches, ...plain } = form
  return plain
}

/** Nothing but what a reading tool owes, on its server's word. */
const trusted: Statement = {
  contract: { risk: "read" },
  terms: undefined,
  failure: "none",
  hidden: false,
  source: "hints"
}

const nothing: Statement = {
  contract: undefined,
  terms: undefined,
  failure: "unknown",
  hidden: false,
  source: "nobody"
}

/** What holds for a tool of the server named `server`, with what is wrong in the part of the file that speaks of it. */
export const statementOf = (
  server: string,
  descriptor: Descriptor,
  form: ServerForm | undefined
): { readonly statement: Statement; readonly problems: ReadonlyArray<FormProblem> } => {
  const own =
    form?.tools !== undefined && Object.hasOwn(form.tools, descriptor.name) ? form.tools[descriptor.name] : undefined
  const said = own ?? (form?.hints === "trust" && descriptor.hints.readOnly === true ? undefined : form?.default)
  if (said === undefined) {
    const believed = form?.hints === "trust" && descriptor.hints.readOnly === true
    return { statement: believed ? trusted : nothing, problems: [] }
  }
  const path: Path = own === undefined ? ["servers", server, "default"] : ["servers", server, "tools", descriptor.name]
  const problems: Array<FormProblem> = []
  const terms = termsOf(said, descriptor, path, problems)
  const contract = plainOf(said)
  const silent = Object.keys(contract).length === 0 && Object.keys(terms).length === 0
  return {
    problems,
    statement: {
      contract: silent ? undefined : contract,
      terms: silent ? undefined : terms,
      failure: said.failure ?? (said.risk === "read" ? "none" : "unknown"),
      hidden: said.hidden ?? false,
      source: own === undefined ? "file default" : "file"
    }
  }
}
