/** An assembly file as data (R-AILLY-7, R-AILLY-8): what conversations are made of. Reads no other file. Throws `Refusal`s. */
import { isObject, type Json, type JsonObject } from "../../../tools/JsonText.ts"
import { countOf, isTrue, listOf, mapOf, nameOf, seen, textOf, wordOf } from "../Fields.ts"
import { type Path, Refusal, type YamlDocument } from "../YamlDocuments.ts"
import { problemOf } from "./FileNames.ts"
import { variableName } from "./PathTemplate.ts"

/** One value of an axis. `name` is what the binding and the file name have. */
export interface AxisValue {
  readonly name: string
  readonly model?: string
}

export interface Axis {
  readonly name: string
  readonly values: ReadonlyArray<AxisValue>
}

export type Prefix =
  | {
      readonly kind: "file" | "system" | "examples" | "external" | "tools"
      readonly path: string
      readonly cache: boolean
    }
  | {
      readonly kind: "context"
      /** A directory of the project. */
      readonly source: string
      readonly glob: string
      readonly count: number | undefined
      readonly cache: boolean
    }

export type Turn =
  | { readonly role: "user"; readonly path: string; readonly cache: boolean }
  | { readonly role: "assistant" }

export interface Assembly {
  readonly name: string
  readonly model: string | undefined
  /** In the order of their names. */
  readonly axes: ReadonlyArray<Axis>
  readonly prefix: ReadonlyArray<Prefix>
  readonly conversation: ReadonlyArray<Turn>
}

const keys = ["name", "model", "matrix", "prefix", "conversation"]

const kinds = ["file", "system", "examples", "context", "external", "tools"] as const

/** Code units: the same everywhere, whatever the language of the machine. */
export const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** A scalar counts as it was written: `012` and `1.0` are names. */
const valueOf = (value: Json, document: YamlDocument, path: Path): AxisValue => {
  const named = (name: string, place: Path): string => {
    const problem = problemOf(name)
    if (problem === undefined) return name
    throw new Refusal(place, `${JSON.stringify(name)} becomes part of a file's name: ${problem}`)
  }
  if (isObject(value)) {
    const map = mapOf(value, path, ["name", "model"])
    const name = named(nameOf(map, "name", path), [...path, "name"])
    return map["model"] === undefined ? { name } : { name, model: nameOf(map, "model", path) }
  }
  if (value === null || typeof value === "object") {
    throw new Refusal(path, `expected a text or a map with name, found ${seen(value)}`)
  }
  return { name: named(typeof value === "string" ? value : (document.sourceOf(path) ?? String(value)), path) }
}

const axesOf = (value: Json | undefined, document: YamlDocument): ReadonlyArray<Axis> => {
  if (value === undefined || value === null) return []
  if (!isObject(value)) throw new Refusal(["matrix"], `expected a map of axes and their values, found ${seen(value)}`)
  return Object.entries(value)
    .map(([name, list]) => {
      const path = ["matrix", name]
      if (!variableName.test(name)) {
        throw new Refusal(
          path,
          `${JSON.stringify(name)} cannot be a variable: letters, digits, _ and -, a letter first`
        )
      }
      const values = listOf(list, path).map((item, index) => valueOf(item, document, [...path, index]))
      if (values.length === 0)
        throw new Refusal(path, "an axis without values makes no conversation: give it one, or remove it")
      return { name, values }
    })
    .sort((a, b) => inOrder(a.name, b.name))
}

const prefixOf = (item: Json, path: Path): Prefix => {
  if (!isObject(item)) throw new Refusal(path, `expected a map with kind, found ${seen(item)}`)
  const kind = wordOf(item, "kind", kinds, path)
  const cache = isTrue(item, "cache", path)
  if (kind !== "context") {
    const map = mapOf(item, path, ["kind", "path", "cache"])
    return { kind, path: nameOf(map, "path", path), cache }
  }
  const map = mapOf(item, path, ["kind", "source", "glob", "count", "cache"])
  const count = map["count"] === undefined ? undefined : countOf(map, "count", path)
  if (count === 0)
    throw new Refusal([...path, "count"], "none of the files would be included: give at least 1, or remove the block")
  const glob = map["glob"] === undefined ? "*" : nameOf(map, "glob", path)
  if (glob.includes("/"))
    throw new Refusal([...path, "glob"], "a glob is a pattern for names of files: put directories into source")
  return { kind, source: nameOf(map, "source", path), glob, count, cache }
}

const turnOf = (item: Json, path: Path): Turn => {
  const map = mapOf(item, path, ["role", "path", "cache"])
  const role = textOf(map, "role", path)
  if (role === "assistant") {
    if (map["path"] === undefined && map["cache"] === undefined) return { role }
    const key = map["path"] === undefined ? "cache" : "path"
    throw new Refusal([...path, key], `an assistant turn has no ${key}: it is a blank slot for the model to fill`)
  }
  if (role !== "user") {
    const instead = role === "system" ? ": put the text into the prefix" : role === "tool" ? ": a run writes those" : ""
    throw new Refusal(
      [...path, "role"],
      `a template has turns with role user and assistant, not ${JSON.stringify(role)}${instead}`
    )
  }
  if (map["path"] === undefined) throw new Refusal(path, "a user turn needs a path: the file that holds its text")
  return { role, path: nameOf(map, "path", path), cache: isTrue(map, "cache", path) }
}

const listAt = (map: JsonObject, key: string): ReadonlyArray<Json> =>
  map[key] === undefined || map[key] === null ? [] : listOf(map[key], [key])

/** `stem` is the name of the file without its ending. */
export const decode = (document: YamlDocument, stem: string): Assembly => {
  const map = mapOf(document.value, [], keys)
  const name = map["name"] === undefined ? stem : nameOf(map, "name", [])
  if (name !== stem) {
    throw new Refusal(["name"], `${name} is not what the file is called (${stem}): give both the same name`)
  }
  const conversation = listAt(map, "conversation").map((item, index) => turnOf(item, ["conversation", index]))
  if (conversation.length === 0)
    throw new Refusal([], "conversation is missing: a list of turns, such as role: user with a path")
  return {
    name,
    model: map["model"] === undefined ? undefined : nameOf(map, "model", []),
    axes: axesOf(map["matrix"], document),
    prefix: listAt(map, "prefix").map((item, index) => prefixOf(item, ["prefix", index])),
    conversation
  }
}
