/** What the answer claims and the record does not show, as the check of claims says it. Judges nothing itself. */
import { type Claim, type ClaimReport, meaning } from "../claims/Claim.ts"
import { badge } from "./CallView.ts"
import { count } from "./Fields.ts"
import { html, type Markup, number, type Part, type Room } from "./Markup.ts"

/** Claims that are shown one by one. */
const most = 50

/** Beside the run's status, if there is something to look at. */
export const claimsBadge = ({ counts, status }: ClaimReport): Part => {
  if (status === "not made") return badge("quiet", "claims not checked")
  if (counts.unsupported > 0) return badge("warn", count(counts.unsupported, "unsupported claim"))
  return counts.unknown > 0 ? badge("quiet", `${count(counts.unknown, "claim")} of unknown support`) : undefined
}

const claimView = (claim: Claim, room: Room): Markup =>
  html`<li><p>${badge(claim.verdict === "unsupported" ? "warn" : "quiet", claim.verdict)} <strong>${room.line(claim.text, 200)}</strong>: ${room.line(
    claim.reason,
    500
  )}</p><p class="quiet">“${room.line(claim.quote, 300)}”</p></li>`

/** The part of the page under the summary. */
export const claimsView = (report: ClaimReport, room: Room): Markup => {
  const { claims, counts, reason, status } = report
  const title = html`<h3 id="claims">What the answer claims</h3>`
  if (status === "not made") return html`${title}<p>The answer's claims were not checked: ${reason}.</p>`
  const all = counts.supported + counts.unsupported + counts.unknown
  if (all === 0) return html`${title}<p>The rules found no claim in the answer. That proves nothing.</p>`
  const open = claims.filter(({ verdict }) => verdict !== "supported")
  const more = counts.unsupported + counts.unknown - Math.min(open.length, most)
  const listed = html`<ul class="problems">${open.slice(0, most).map((claim) => claimView(claim, room))}${
    more > 0 ? html`<li>and ${number(more)} more</li>` : undefined
  }</ul>`
  return html`${title}<p>${count(all, "claim")}: ${number(counts.supported)} supported, ${number(counts.unsupported)} unsupported${
    counts.unknown > 0 ? `, ${number(counts.unknown)} unknown` : ""
  }.${reason === "" ? "" : ` Of some it cannot be said, because ${reason}.`}</p>${open.length > 0 ? listed : undefined}<p class="quiet">${meaning}</p>`
}
