/**
 * The form of a contract file: what somebody who knows a server says about its tools. It is the only thing that makes a tool of
 * an MCP server less than the worst kind. Plain data in, statements or problems with their places out; reads no file.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { nearest } from "../Nearest.ts"

const Text = Schema.String.check(Schema.isMinLength(1))
const Amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
const Millis = Schema.Int.check(Schema.isGreaterThan(0))

const TouchForm = Schema.Struct({
  verb: Schema.Literals(["read", "write", "delete", "send", "execute"]),
  /** A template, as in `workspace:{path}`. */
  resource: Text
})

/** What can be said about one tool. `post` can only be `result`: a file holds no code that looks. */
export const ToolForm = Schema.Struct({
  risk: Schema.optionalKey(Schema.Literals(["read", "local-write", "external"])),
  ledger: Schema.optionalKey(Schema.Literals(["external", "none"])),
  retry: Schema.optionalKey(Schema.Literals(["safe", "never"])),
  reversible: Schema.optionalKey(Schema.Boolean),
  evidence: Schema.optionalKey(
    Schema.Struct({ source: Schema.Literals(["self", "probe", "sensor", "person"]), describes: Text })
  ),
  post: Schema.optionalKey(Schema.Literal("result")),
  scopes: Schema.optionalKey(Schema.Array(Text)),
  touches: Schema.optionalKey(Schema.Array(TouchForm)),
  cost: Schema.optionalKey(Amount),
  hazard: Schema.optionalKey(Amount),
  /** A template for the name of the logical attempt, as in `invoice:{order}:v1`. */
  key: Schema.optionalKey(Text),
  keyParameter: Schema.optionalKey(Text),
  compensation: Schema.optionalKey(Text),
  version: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
  deadlineMillis: Schema.optionalKey(Millis),
  polling: Schema.optionalKey(Schema.Boolean),
  /** What an error that the tool reports says about the world. Default `unknown`; `none` for tools that only read. */
  failure: Schema.optionalKey(Schema.Literals(["none", "present", "unknown"])),
  /** The tool is not offered. */
  hidden: Schema.optionalKey(Schema.Boolean)
})
export type ToolForm = typeof ToolForm.Type

const ServerForm = Schema.Struct({
  /** `trust`: a tool that its server calls read-only is taken for one that reads. */
  hints: Schema.optionalKey(Schema.Literals(["ignore", "trust"])),
  /** For tools that are not named. */
  default: Schema.optionalKey(ToolForm),
  tools: Schema.optionalKey(Schema.Record(Schema.String, ToolForm))
})
export type ServerForm = typeof ServerForm.Type

const FileForm = Schema.Struct({
  version: Schema.Literal(1),
  /** By the name a server has on the command line. Servers that are not there are left alone. */
  servers: Schema.Record(Schema.String, ServerForm)
})
export type ContractFile = typeof FileForm.Type

/** A problem and where it is: the keys that lead there. */
export interface FormProblem {
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}

const decode = Schema.decodeUnknownResult(FileForm, { errors: "all", onExcessProperty: "error" })
const explain = SchemaIssue.makeFormatterStandardSchemaV1()

const keysAt = (path: ReadonlyArray<string | number>): ReadonlyArray<string> => {
  if (path.length === 1) return Object.keys(FileForm.fields)
  if (path.length === 3) return Object.keys(ServerForm.fields)
  const inTool = path.length === (path[2] === "default" ? 4 : 5)
  if (inTool) return Object.keys(ToolForm.fields)
  return path.includes("evidence") ? ["source", "describes"] : Object.keys(TouchForm.fields)
}

const remedies: Readonly<Record<string, string>> = {
  ledger: 'expected "external" or "none": "observe" needs a probe and "atomic" a transaction, which a file cannot hold',
  post: 'expected "result": a file holds no code that looks',
  version: "expected a whole number from 1"
}

const messageOf = (path: ReadonlyArray<string | number>, message: string): string => {
  const key = String(path.at(-1))
  if (message === "Missing key") return "it is missing"
  if (message === "Expected no excess property") {
    const keys = keysAt(path)
    const near = nearest(key, keys)
    return `there is no "${key}" here; ${near === undefined ? `there are ${keys.join(", ")}` : `did you mean "${near}"?`}`
  }
  if (path.length === 1 && key === "version") return "expected 1, the only version there is"
  return remedies[key] ?? message.replace(/^E/, "e").replaceAll(" | ", " or ")
}

/** `servers.files.tools.write_file.risk`; keys that are not plain words are quoted. */
export const placeOf = (path: ReadonlyArray<string | number>): string =>
  path
    .map((key) =>
      typeof key === "number" ? `[${key}]` : /^[\w-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
    )
    .join("")
    .replace(/^\./, "")

/** A parsed file as statements, or everything that is wrong with it. */
export const read = (value: unknown): Result.Result<ContractFile, ReadonlyArray<FormProblem>> =>
  Result.mapError(decode(value), ({ issue }) =>
    explain(issue).issues.map(({ message, path = [] }) => {
      const keys = path.map((key) => (typeof key === "number" ? key : String(key)))
      return { path: keys, message: messageOf(keys, message) }
    })
  )
