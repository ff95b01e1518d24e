/**
 * A schema as the set of named schemas it is: which base every schema inside it has, and where each reference leads. References go
 * by pointer, by anchor, by an `$id` that is inside, or to the description of a dialect. Fetches nothing and checks no value.
 */
import { resolveReference } from "./ClosedSchema.ts"
import { isObject, type Json, type JsonObject } from "./JsonText.ts"
import type { Dialect } from "./SchemaDialect.ts"
import { inside } from "./SchemaPlaces.ts"
import { noBase, resolved } from "./SchemaReferences.ts"

/** A schema with a base of its own, and the names that are given in it. */
export interface Resource {
  readonly uri: string
  readonly root: JsonObject
  readonly dialect: Dialect
  readonly anchors: Map<string, JsonObject>
  /** Those of them that `$dynamicAnchor` gave. */
  readonly dynamic: Map<string, JsonObject>
}

export interface Target {
  readonly schema: Json
  /** Where it was looked for. */
  readonly resource: Resource
  /** The anchor it was named by. */
  readonly anchor: string | undefined
}

/** The description of a dialect by its address, as the validator brings it along. */
export type Described = (uri: string) => JsonObject | undefined

const fragmentOf = (reference: string): string => {
  const at = reference.indexOf("#")
  return at === -1 ? "" : reference.slice(at + 1)
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export class SchemaResources {
  readonly #byUri = new Map<string, Resource>()
  readonly #homes = new Map<JsonObject, Resource>()
  readonly #targets = new Map<JsonObject, Map<string, Target>>()
  readonly #described: Described

  /** Throws an `Error` where a name is given twice. */
  constructor(root: JsonObject, dialect: Dialect, described: Described) {
    this.#described = described
    this.#index(root, this.#resource(noBase, root, dialect))
  }

  /** Every schema that has been met, those met meanwhile included. */
  get schemas(): Iterable<JsonObject> {
    return this.#homes.keys()
  }

  homeOf(schema: JsonObject): Resource {
    return this.#homes.get(schema)!
  }

  /** Where the reference of a schema leads. Throws an `Error` where it leads nowhere. */
  locate(from: JsonObject, reference: string): Target {
    const known = this.#targets.get(from)?.get(reference)
    if (known !== undefined) return known
    const found = this.#find(this.homeOf(from), reference)
    if (found === undefined) throw new Error(`it refers to ${reference}, which is not there`)
    if (!this.#targets.has(from)) this.#targets.set(from, new Map())
    this.#targets.get(from)!.set(reference, found)
    return found
  }

  #find(home: Resource, reference: string): Target | undefined {
    const uri = reference.startsWith("#") ? home.uri : resolved(reference, home.uri)
    const resource = uri === undefined ? undefined : (this.#byUri.get(uri) ?? this.#load(uri))
    if (resource === undefined) return undefined
    const fragment = fragmentOf(reference)
    if (fragment !== "" && !fragment.startsWith("/")) {
      const anchor = decoded(fragment)
      const schema = resource.anchors.get(anchor)
      return schema === undefined ? undefined : { schema, resource, anchor }
    }
    const schema = resolveReference(resource.root, `#${fragment}`)
    if (schema === undefined || !(typeof schema === "boolean" || isObject(schema))) return undefined
    // A pointer may lead to what is no schema as far as the keywords say.
    if (isObject(schema) && !this.#homes.has(schema)) this.#index(schema, resource)
    return { schema, resource, anchor: undefined }
  }

  #load(uri: string): Resource | undefined {
    const root = this.#described(uri)
    if (root === undefined) return undefined
    const resource = this.#resource(uri, root, uri.includes("draft-07") ? "draft-07" : "2020-12")
    this.#index(root, resource)
    return resource
  }

  #resource(uri: string, root: JsonObject, dialect: Dialect): Resource {
    if (this.#byUri.has(uri)) throw new Error(`two schemas in it have the $id ${uri}`)
    const made: Resource = { uri, root, dialect, anchors: new Map(), dynamic: new Map() }
    this.#byUri.set(uri, made)
    return made
  }

  #index(schema: Json, outer: Resource): void {
    if (!isObject(schema) || this.#homes.has(schema)) return
    const id = schema["$id"]
    const own = typeof id === "string" && !id.startsWith("#") ? resolved(id, outer.uri) : undefined
    const isNew = own !== undefined && own !== outer.uri
    const home = isNew ? this.#resource(own, schema, outer.dialect) : outer
    this.#homes.set(schema, home)
    if (home.dialect === "draft-07") {
      // There an anchor is an $id that is only a fragment.
      if (typeof id === "string") this.#name(home, fragmentOf(id), schema)
    } else {
      for (const key of ["$anchor", "$dynamicAnchor"]) {
        const name = schema[key]
        if (typeof name !== "string") continue
        this.#name(home, name, schema)
        if (key === "$dynamicAnchor") home.dynamic.set(name, schema)
      }
    }
    for (const { schema: inner } of inside(schema)) this.#index(inner, home)
  }

  #name({ anchors }: Resource, name: string, schema: JsonObject): void {
    if (name === "") return
    const other = anchors.get(name)
    if (other !== undefined && other !== schema) throw new Error(`two schemas in it have the anchor ${name}`)
    anchors.set(name, schema)
  }
}
