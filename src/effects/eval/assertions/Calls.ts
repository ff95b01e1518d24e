/** What kinds about calls share: matching of arguments, and what they say they saw. */
import type { JsonObject } from "../../../tools/JsonText.ts"
import { contains } from "../Operator.ts"
import type { ProposedUse, Subject } from "../Subject.ts"
import { quote } from "../Verdict.ts"

/** Recursive subset for objects, equality for lists and scalars. */
export const fits = (input: JsonObject, args: JsonObject): boolean => contains(input, args)

const mostShown = 20

/** `called: web_search ×2, web_fetch`, in the order of their first call. */
export const namesSeen = (subject: Subject): string => {
  const counts = new Map<string, number>()
  for (const { name } of subject.calls()) counts.set(name, (counts.get(name) ?? 0) + 1)
  if (counts.size === 0) return subject.unfinished() ?? "no tool was called"
  const shown = [...counts].slice(0, mostShown).map(([name, n]) => (n === 1 ? name : `${name} ×${n}`))
  return `called: ${shown.join(", ")}${counts.size > mostShown ? ", …" : ""}`
}

/** `calls: web_search → web_fetch`, every call in order. */
export const orderSeen = (subject: Subject): string => {
  const names = subject.calls().map(({ name }) => name)
  if (names.length === 0) return namesSeen(subject)
  return `called in this order: ${names.slice(0, mostShown).join(", ")}${names.length > mostShown ? ", …" : ""}`
}

export const argumentsSeen = (calls: ReadonlyArray<ProposedUse>): string =>
  `seen: ${calls
    .slice(0, 3)
    .map(({ input }) => quote(JSON.stringify(input), 300).slice(1, -1).replaceAll('\\"', '"'))
    .join("; ")}${calls.length > 3 ? "; …" : ""}`
