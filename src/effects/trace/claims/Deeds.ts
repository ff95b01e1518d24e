/**
 * Which calls can bear a claim of having done something: by what their contracts allow, by what their tools' names say, by the names in
 * their arguments and results. Knows nothing about sentences.
 */
import type { Deed, Evidence } from "./Evidence.ts"
import type { Name } from "./Names.ts"
import { wordSet } from "./Statements.ts"

export type Family = "send" | "pay" | "book" | "delete" | "compute" | "web"

const families: Readonly<Record<Family, ReadonlySet<string>>> = {
  send: wordSet(
    "send email mail message notify post publish share forward submit upload reply text sms tweet announce deliver chat slack"
  ),
  pay: wordSet("pay payment transfer refund charge wire purchase buy order checkout money"),
  book: wordSet("book booking reserve reservation schedule appointment calendar meeting"),
  delete: wordSet("delete remove rm erase cancel revoke drop rename move archive purge"),
  compute: wordSet("calculate calculator calc compute math echo clarify ask eval evaluate"),
  web: wordSet(
    "web browse browser fetch http https url internet online google bing crawl site website wiki wikipedia news download"
  )
}

/** What a tool's name says about it: `send_email`, `webSearch`. */
const familiesOf = (tool: string): ReadonlySet<Family> => {
  const parts = tool
    .slice(0, 200)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/)
  return new Set(
    (Object.keys(families) as Array<Family>).filter((family) => parts.some((part) => families[family].has(part)))
  )
}

const acting: ReadonlyArray<Family> = ["send", "pay", "book", "delete"]
const acts = (of: ReadonlySet<Family>): boolean => acting.some((family) => of.has(family))

/** May have put something somewhere. `loosely`: or made something elsewhere, as "created" may mean. */
export const writes = (loosely: boolean) => (deed: Deed) =>
  deed.risk === "local-write" || (deed.risk === "external" && (loosely || !acts(familiesOf(deed.tool))))

/** May have done this to the world. A tool that only writes here has to say by its name that it does this. */
export const does = (family: Family | undefined) => (deed: Deed) => {
  const of = familiesOf(deed.tool)
  if (deed.risk === "external") return family === undefined || !acts(of) || of.has(family)
  return deed.risk === "local-write" && family !== undefined && of.has(family)
}

/** May have looked something up. */
export const reads = (web: boolean) => (deed: Deed) => {
  const of = familiesOf(deed.tool)
  if (of.has("compute") || deed.risk === "local-write" || (deed.risk === "external" && acts(of))) return false
  return !web || of.has("web")
}

export interface Ground {
  readonly supported: boolean
  readonly reason: string
  readonly calls: ReadonlyArray<string>
}

/** The longest a tool's name gets in a reason. */
const shown = (tool: string): string => (tool.length > 60 ? `${tool.slice(0, 60)}…` : tool)

/**
 * Rests a claim on calls that `fits`, and if it names something, on such a call where the name stands in one of `places`.
 * @param what the calls in words, as in "no call that writes"
 */
export const ground = (
  evidence: Evidence,
  what: string,
  fits: (deed: Deed) => boolean,
  name?: { readonly name: Name; readonly places: ReadonlyArray<string> }
): Ground => {
  const fitting = name === undefined ? evidence.succeeded.filter(fits) : []
  const named =
    name === undefined
      ? []
      : evidence
          .places(name.name)
          .flatMap(({ deed, place }) =>
            deed?.succeeded === true && fits(deed) && name.places.includes(place) ? [deed] : []
          )
  const bearing = [...new Set([...fitting, ...named].map(({ id }) => id))]
  if (bearing.length > 0) {
    const [first] = [...fitting, ...named]
    return { supported: true, reason: `${shown(first!.tool)} (${first!.id}) succeeded`, calls: bearing.slice(0, 5) }
  }
  const came = evidence.others.filter(fits).slice(-3)
  const naming = name === undefined ? "" : ` and names ${name.name.text}`
  const failed = came.map(({ fate, id, tool }) => `${shown(tool)} (${id}) ${fate}`).join(", ")
  const any = came.length > 0 || evidence.succeeded.some(fits)
  const reason = any
    ? `no call ${what}${naming} succeeded${failed === "" ? "" : `: ${failed}`}`
    : `there is no call ${what}`
  return { supported: false, reason, calls: came.map(({ id }) => id) }
}
