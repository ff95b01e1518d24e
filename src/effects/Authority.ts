/**
 * What a run is permitted, held by the runtime and asked at every call: scopes by name, resources by verb and pattern.
 * Nothing a prompt or a model says has a part in it. It does not touch the resources it decides about.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import { nearest } from "../tools/Nearest.ts"
import type { Touch, Verb } from "../tools/Terms.ts"
import { covers, overlaps, type Resource, read } from "./ResourcePattern.ts"

/** What can be done to a resource. None implies another. */
export const verbs = ["read", "write", "delete", "send", "execute"] as const satisfies ReadonlyArray<Verb>

/** A verb (or all, `*`) on the resources of a pattern: `*` within one part of a path or host, `**` for any number of parts. */
export interface Grant {
  readonly verb: Verb | "*"
  readonly pattern: string
}

/** `deny` outweighs `resources`. `expiresAt`: milliseconds since 1970; from then on nothing is permitted. */
export interface Grants {
  readonly scopes: ReadonlyArray<string> | "all"
  readonly resources: ReadonlyArray<Grant> | "all"
  readonly deny?: ReadonlyArray<Grant>
  readonly expiresAt?: number
}

/**
 * What one call needs. A tool that acts on a whole tree names it with `**` (`delete workspace:notes/**`); one that does not
 * declare what it touches is asked about as `undeclared(tool)`.
 */
export interface Need {
  readonly tool: string
  readonly scopes: ReadonlyArray<string>
  readonly touches: ReadonlyArray<Touch>
}

/** One thing that is not permitted, in words for a model: it names what was asked for, never the state of anything. */
export interface Denied {
  readonly what: string
  readonly reason: string
}

/** Asked anew at every call: an empty list permits, and what was permitted before may be refused now. */
export interface Authority {
  readonly name: string
  readonly check: (need: Need) => Effect.Effect<ReadonlyArray<Denied>>
}

/** Stands for whatever an undeclared tool does: only `execute:tool:NAME`, or everything, permits it. */
export const undeclared = (tool: string): Touch => ({ verb: "execute", resource: `tool:${tool}` })

/** Permits everything: limits are then the tool's own and the approver's. */
export const everything: Authority = { name: "everything", check: () => Effect.succeed([]) }

type Compiled = { readonly verb: Grant["verb"]; readonly pattern: Resource | undefined }

const compile = (grants: ReadonlyArray<Grant>): ReadonlyArray<Compiled> =>
  grants.map(({ pattern, verb }) => {
    const resource = read(pattern)
    return { verb, pattern: typeof resource === "string" ? undefined : resource }
  })

const concerns = (grant: Compiled, verb: Verb): boolean => grant.verb === "*" || grant.verb === verb

/** The authority these grants describe. A pattern that cannot be read grants nothing, and as a denial denies its verb everywhere. */
export const fromGrants = (grants: Grants, name = "grants"): Authority => {
  const allow = grants.resources === "all" ? "all" : compile(grants.resources)
  const deny = compile(grants.deny ?? [])
  const scopes = grants.scopes === "all" ? "all" : new Set(grants.scopes)
  const touch = ({ resource, verb }: Touch): Denied | undefined => {
    if (allow === "all" && deny.length === 0) return undefined
    const target = read(resource)
    if (typeof target === "string") {
      return { what: `${verb} ${JSON.stringify(resource.slice(0, 200))}`, reason: `it cannot be checked: ${target}` }
    }
    const denied = deny.some((d) => concerns(d, verb) && (d.pattern === undefined || overlaps(d.pattern, target)))
    const granted = allow === "all" || allow.some((g) => concerns(g, verb) && g.pattern && covers(g.pattern, target))
    if (granted && !denied) return undefined
    return { what: `${verb} ${resource.slice(0, 200)}`, reason: "this run is not permitted to" }
  }
  const scope = (wanted: string): Denied | undefined =>
    scopes === "all" || scopes.has(wanted)
      ? undefined
      : { what: `scope ${wanted}`, reason: "this run does not have it" }
  return {
    name,
    check: Effect.fnUntraced(function* (need) {
      if (grants.expiresAt !== undefined && !((yield* Clock.currentTimeMillis) < grants.expiresAt)) {
        return [{ what: `tool ${need.tool}`, reason: "what this run was permitted has expired" }]
      }
      return distinct([...need.scopes.map(scope), ...need.touches.map(touch)])
    })
  }
}

const distinct = (denials: ReadonlyArray<Denied | undefined>): ReadonlyArray<Denied> => [
  ...new Map(denials.flatMap((d) => (d === undefined ? [] : [[`${d.what}\n${d.reason}`, d] as const]))).values()
]

/** For a run inside a run: what both permit. Delegation never widens. */
export const narrow = (parent: Authority, child: Authority): Authority => ({
  name: `${parent.name} > ${child.name}`,
  check: (need) =>
    Effect.map(Effect.all([parent.check(need), child.check(need)]), ([above, below]) => distinct([...above, ...below]))
})

/** An authority that can be taken back while the run goes on; from then on every call is refused. */
export const revocable = (
  authority: Authority
): Effect.Effect<{ readonly authority: Authority; readonly revoke: Effect.Effect<void> }> =>
  Effect.map(Ref.make(false), (revoked) => ({
    revoke: Ref.set(revoked, true),
    authority: {
      name: authority.name,
      check: Effect.fnUntraced(function* (need) {
        if (!(yield* Ref.get(revoked))) return yield* authority.check(need)
        return [{ what: `tool ${need.tool}`, reason: "what this run was permitted has been revoked" }]
      })
    }
  }))

/** A grant from `VERB:RESOURCE`, as in `write:workspace:notes/**`; or what is wrong with it, in words. */
export const parseGrant = (text: string): Result.Result<Grant, string> => {
  const colon = text.indexOf(":")
  const verb = text.slice(0, Math.max(colon, 0)).trim()
  const form = `"${text}" is not a grant of the form VERB:RESOURCE, as in write:workspace:notes/**`
  const known: ReadonlyArray<string> = [...verbs, "*"]
  if (colon < 0) return Result.fail(form)
  if (!known.includes(verb)) {
    const near = nearest(verb, verbs)
    const hint = near === undefined ? `the verbs are ${verbs.join(", ")} and * for all` : `did you mean ${near}?`
    return Result.fail(`${form}: there is no verb "${verb}", ${hint}`)
  }
  const pattern = text.slice(colon + 1).trim()
  if (pattern === "") return Result.fail(`${form}: the resource is missing`)
  const resource = read(pattern)
  if (typeof resource === "string") return Result.fail(`${form}: the resource cannot be used: ${resource}`)
  if (resource.host !== undefined && /[?#]/.test(pattern)) {
    return Result.fail(`${form}: a pattern ends before ? and #`)
  }
  return Result.succeed({ verb: verb as Grant["verb"], pattern })
}
