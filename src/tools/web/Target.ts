/**
 * Which place a URL names, and whether the run may go there by name: scheme, credentials, host, port. What address the
 * host has is decided later, next to the connection (`Route`). Every redirect comes through here again.
 */
import * as Result from "effect/Result"
import { parseRange, type Range } from "./Address.ts"
import { refused, WebFault } from "./WebFault.ts"

/** `host`: lower case, in its ASCII form, without a trailing dot, an IPv6 address without brackets. */
export interface Target {
  readonly url: URL
  readonly host: string
  readonly port: number
}

/** One entry of `hosts`, read. `port` undefined: the scheme's own. */
export interface Grant {
  readonly host: string
  readonly wildcard: boolean
  readonly port: number | undefined
}

/** A target that may be visited, and the addresses open to it although they are not public. */
export interface Admitted extends Target {
  readonly allowed: ReadonlyArray<Range>
}

export type Admit = (target: Target) => Result.Result<Admitted, WebFault>

const maxUrlLength = 4096

const wrong = (message: string) => Result.fail(new WebFault({ kind: "invalid_arguments", message }))

/** Reads a URL; `base` is what a redirect is relative to. Fragments are dropped, they are nobody's but the reader's. */
export const read = (text: string, base?: URL): Result.Result<Target, WebFault> => {
  if (text.length > maxUrlLength) return wrong(`the URL is longer than ${maxUrlLength} characters`)
  // A URL parser takes these out without a word, so two readers may see two hosts.
  if (/[\u0000-\u001f\u007f\\]/.test(text)) return wrong("the URL contains a backslash or a control character")
  const url = URL.parse(text.trim(), base?.href)
  if (url === null) return wrong('that is not a complete URL: write it as "https://host/path"')
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return Result.fail(refused(`${url.protocol} addresses are not read, only https: and http:`))
  }
  if (url.username !== "" || url.password !== "") {
    return Result.fail(refused("the URL carries a user name or password: leave it out, nothing is ever logged in to"))
  }
  url.hash = ""
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")
  if (host === "" || host.split(".").includes("")) return wrong("the host of the URL has an empty part")
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)
  return Result.succeed({ url, host, port })
}

/** A grant from its text, or what is wrong with it. */
const parseGrant = (text: string): Grant | string => {
  if (text === "*") return { host: "*", wildcard: true, port: undefined }
  const wildcard = text.startsWith("*.")
  const rest = wildcard ? text.slice(2) : text
  const port = /:(\d{1,5})$/.exec(rest.startsWith("[") ? rest.slice(rest.indexOf("]")) : rest)?.[1]
  const name = port === undefined ? rest : rest.slice(0, -port.length - 1)
  const url = /[/?#@\\\s*]/.test(name) ? null : URL.parse(`http://${name}/`)
  if (url === null || url.hostname === "" || (url.port !== "" && port === undefined) || Number(port ?? 1) > 65_535) {
    return `"${text.slice(0, 100)}" is not a host: write example.org, *.example.org, example.org:8443, or * for all`
  }
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")
  return { host, wildcard, port: port === undefined ? undefined : Number(port) }
}

const covers = ({ host, port, wildcard }: Grant, target: Target): boolean => {
  const own = target.url.protocol === "https:" ? 443 : 80
  if (target.port !== (port ?? own)) return false
  return wildcard ? host === "*" || target.host.endsWith(`.${host}`) : target.host === host
}

/** What the operator wrote that cannot be read, in words; nothing if all can. */
export const problemWith = (hosts: ReadonlyArray<string>, addresses: ReadonlyArray<string>): string | undefined => {
  const host = hosts.map(parseGrant).find((grant) => typeof grant === "string")
  if (host !== undefined) return host as string
  const bad = addresses.find((text) => parseRange(text) === undefined)
  return bad === undefined
    ? undefined
    : `"${bad.slice(0, 100)}" is not an address or range: write 127.0.0.1 or 10.1.0.0/16`
}

const shownHosts = 10

/** The rule for a run with these hosts and addresses. */
export const admitting = (hosts: ReadonlyArray<string>, addresses: ReadonlyArray<string> = []): Admit => {
  const problem = problemWith(hosts, addresses)
  if (problem !== undefined) {
    return () => Result.fail(refused(`what this run may read on the web is set up wrongly: ${problem}`))
  }
  const grants = hosts.map(parseGrant) as ReadonlyArray<Grant>
  const ranges = addresses.map((text) => parseRange(text)!)
  return (target) => {
    const fitting = grants.filter((grant) => covers(grant, target))
    if (fitting.length === 0) return Result.fail(notGranted(target, hosts))
    const byName = fitting.some((grant) => !grant.wildcard)
    return Result.succeed({ ...target, allowed: byName ? ranges : [] })
  }
}

const notGranted = ({ host, port, url }: Target, hosts: ReadonlyArray<string>): WebFault => {
  const shown = `${hosts.slice(0, shownHosts).join(", ")}${hosts.length > shownHosts ? ", …" : ""}`
  const place = url.port === "" ? host : `${host}, port ${port},`
  return refused(`this run may not read ${place.slice(0, 200)}; it may read: ${shown === "" ? "nothing" : shown}`)
}
