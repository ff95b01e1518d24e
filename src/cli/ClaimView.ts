/** The claims of an answer on a terminal and as JSON. Judges nothing. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { type Claim, type ClaimReport, meaning } from "../effects/trace/claims/Claim.ts"
import { ClaimCheck } from "../effects/trace/claims/ClaimCheck.ts"
import { count, inline, jsonText } from "./Printable.ts"
import type { Paint } from "./Screen.ts"
import type { TraceFile } from "./TraceFile.ts"

/** Claims that are shown one by one. */
const most = 20

const openOf = ({ claims }: ClaimReport): ReadonlyArray<Claim> =>
  claims.filter(({ verdict }) => verdict !== "supported")

/** What is said of all claims together, in a line. */
const headline = ({ counts, reason, status }: ClaimReport): string => {
  if (status === "not made") return `not checked: ${reason}`
  const all = counts.supported + counts.unsupported + counts.unknown
  if (all === 0) return "none that the rules know, which proves nothing"
  const unknown = counts.unknown > 0 ? `, ${counts.unknown} unknown: ${reason}` : ""
  return `${count(all, "claim")}: ${counts.supported} supported, ${counts.unsupported} unsupported${unknown}`
}

const lineOf = (claim: Claim, paint: Paint): string => {
  const verdict = claim.verdict === "unsupported" ? paint.yellow(claim.verdict) : claim.verdict
  return `${verdict}: ${inline(claim.text)}: ${inline(claim.reason)} ${paint.dim(`("${inline(claim.quote)}")`)}`
}

/** The first line goes beside a heading, the others under it. */
export const claimLines = (report: ClaimReport, paint: Paint): ReadonlyArray<string> => {
  const open = openOf(report)
  const more = report.counts.unsupported + report.counts.unknown - Math.min(open.length, most)
  return [
    headline(report),
    ...open.slice(0, most).map((claim) => lineOf(claim, paint)),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...(report.counts.unsupported > 0 ? [paint.dim(meaning)] : [])
  ]
}

export const claimDocument = ({ claims, counts, reason, status }: ClaimReport) => ({
  status: status.replaceAll(" ", "_"),
  reason,
  counts,
  meaning,
  listed: claims
})

/** The claims of a run that was read as a whole. */
export const claimsIn = ({ cut, records, unreadable }: TraceFile): ClaimReport => {
  const check = new ClaimCheck()
  for (const record of records) check.see(record)
  if (unreadable > 0 || cut) check.unreadable()
  return check.end()
}

/** What the answer claims of one call: what rests on it, or would if it had succeeded. */
export const claimsAbout = (call: string, report: ClaimReport): ReadonlyArray<Claim> =>
  report.claims.filter(({ calls }) => calls.includes(call))

export const aboutLines = (claims: ReadonlyArray<Claim>, paint: Paint): ReadonlyArray<string> =>
  claims.length === 0
    ? []
    : ["", "The answer claims:", ...claims.slice(0, most).map((claim) => `  ${lineOf(claim, paint)}`)]

/** `writ trace explain TRACE answer`: every claim with its reason. */
export const explainAnswer = (trace: TraceFile, json: boolean, paint: Paint) => {
  const report = claimsIn(trace)
  if (json) {
    const document = { file: trace.path, run_id: trace.run.runId, claims: claimDocument(report) }
    return Console.log(jsonText(document))
  }
  const supported = report.claims.filter(({ verdict }) => verdict === "supported").slice(0, most)
  const [first, ...rest] = claimLines(report, paint)
  return Effect.asVoid(
    Console.log(
      [
        `${paint.bold("the answer")}: ${first}`,
        ...(report.claims.length > 0 ? [""] : []),
        ...supported.map((claim) => lineOf(claim, paint)),
        ...rest
      ].join("\n")
    )
  )
}
