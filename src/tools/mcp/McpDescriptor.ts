/**
 * A tool as an MCP server describes it, read as what it is: a claim of somebody we do not know. What cannot be used is refused
 * by name, with the reason, and takes no other tool with it.
 */
import { createHash } from "node:crypto"
import * as Result from "effect/Result"
import { canonical, isObject, isWithinDepth, type Json, type JsonObject } from "../JsonText.ts"

/** What a server says a tool is like. It decides about nothing (see `McpContract`). */
export interface Hints {
  readonly readOnly?: boolean
  readonly destructive?: boolean
  readonly idempotent?: boolean
  readonly openWorld?: boolean
}

export interface Descriptor {
  /** As the server calls it. */
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly hints: Hints
  /** SHA-256 (hex) of everything that a model or a check is told by it. Another hash is another tool. */
  readonly hash: string
}

/** A tool that is not offered, and why. */
export interface RefusedTool {
  readonly name: string
  readonly reason: string
}

/** Bytes of JSON one description may have, schemas included. */
const maxDescriptorBytes = 256 * 1024
const maxDepth = 64
const maxName = 128
const maxDescription = 4096

const shown = (name: unknown, at: number): string =>
  typeof name === "string" && name !== "" ? name.slice(0, maxName) : `tool number ${at + 1}`

const hintsOf = (annotations: Json | undefined): Hints => {
  if (annotations === undefined || !isObject(annotations)) return {}
  const said = (key: string) => (typeof annotations[key] === "boolean" ? (annotations[key] as boolean) : undefined)
  const hints = {
    readOnly: said("readOnlyHint"),
    destructive: said("destructiveHint"),
    idempotent: said("idempotentHint"),
    openWorld: said("openWorldHint")
  }
  return Object.fromEntries(Object.entries(hints).filter(([, value]) => value !== undefined))
}

/** Text for a model: no control characters, and no more of it than anybody reads. */
const plain = (text: Json | undefined): string => {
  if (typeof text !== "string") return ""
  const clean = text.toWellFormed().replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
  return clean.length > maxDescription ? `${clean.slice(0, maxDescription).toWellFormed()}…` : clean
}

const faultOf = (value: JsonObject): string | undefined => {
  const { inputSchema, name, outputSchema } = value
  if (typeof name !== "string" || name === "") return "it has no name"
  if (name.length > maxName) return `its name has more than ${maxName} characters`
  if (name !== name.toWellFormed()) return "its name is not text"
  if (inputSchema === undefined || !isObject(inputSchema)) return "it has no input schema"
  if (inputSchema["type"] !== "object") return "its input schema is not of type object"
  if (outputSchema !== undefined && !isObject(outputSchema)) return "its output schema is not an object"
  const execution = value["execution"]
  if (execution !== undefined && isObject(execution) && execution["taskSupport"] === "required") {
    return "it can only be called as a task, which is not supported"
  }
  return undefined
}

/** Reads one entry of a tool list; `at` is its place there, from 0. */
export const read = (value: unknown, at: number): Result.Result<Descriptor, RefusedTool> => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return Result.fail({ name: shown(undefined, at), reason: "it is not an object" })
  }
  const raw = value as JsonObject
  const refuse = (reason: string) => Result.fail({ name: shown(raw["name"], at), reason })
  if (!isWithinDepth(raw, maxDepth)) return refuse(`its description is nested deeper than ${maxDepth} levels`)
  const bytes = Buffer.byteLength(JSON.stringify(raw))
  if (bytes > maxDescriptorBytes) {
    return refuse(`its description has ${bytes} bytes, at most ${maxDescriptorBytes} are allowed`)
  }
  const fault = faultOf(raw)
  if (fault !== undefined) return refuse(fault)
  const { annotations, description, inputSchema, name, outputSchema, title } = raw
  const said = {
    name: name as string,
    description: plain(description ?? title),
    inputSchema: inputSchema as JsonObject,
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as JsonObject })
  }
  const hints = hintsOf(annotations)
  const hash = createHash("sha256")
    .update(canonical({ ...said, hints: { ...hints } }))
    .digest("hex")
  return Result.succeed({ ...said, hints, hash })
}

/** The tools of a whole list, as they were read. Of two with one name neither is offered: nobody could say which one a call means. */
export const together = (
  read_: ReadonlyArray<Result.Result<Descriptor, RefusedTool>>
): { readonly tools: ReadonlyArray<Descriptor>; readonly refused: ReadonlyArray<RefusedTool> } => {
  const refused = read_.flatMap((one) => (Result.isFailure(one) ? [one.failure] : []))
  const found = read_.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
  const names = found.map((one) => one.name)
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at))
  return {
    tools: found.filter((one) => !twice.has(one.name)),
    refused: [...refused, ...[...twice].map((name) => ({ name, reason: "the server lists two tools of this name" }))]
  }
}
