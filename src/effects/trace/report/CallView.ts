/** A call as a card: what was checked, what was decided, what happened, and what the model was told. */
import type { Call } from "./Calls.ts"
import { duration } from "./Fields.ts"
import { html, type Markup, type Part } from "./Markup.ts"

type Tone = "good" | "bad" | "warn" | "quiet"

/** A word with a sign that does not rely on its colour. */
export const badge = (tone: Tone, text: Part): Markup =>
  html`<span class="badge ${tone}"><span aria-hidden="true">${{ good: "✓", bad: "✗", warn: "!", quiet: "·" }[tone]}</span> ${text}</span>`

const check = (name: string, result: string): Markup => {
  if (result === "pass") return badge("good", name)
  return result === "fail" ? badge("bad", `${name} failed`) : badge("quiet", `${name} not checked`)
}

const checks = ({ checks: found, rejected }: Call): Part => {
  if (found === undefined) return rejected === undefined ? undefined : badge("bad", "refused")
  const known = found.cause === "superseded_by_ledger" ? badge("quiet", "the ledger knew it") : undefined
  const blocked = found.blockedBy === "" ? undefined : badge("bad", `blocked by ${found.blockedBy}`)
  return html`${check("schema", found.schema)} ${check("scopes", found.scopes)} ${check("precondition", found.pre)} ${blocked} ${known}`
}

const again = ({ recheck }: Call): Part => {
  if (recheck === undefined) return undefined
  const held = recheck.pre === "fail" ? "no longer held" : "still held"
  return badge(recheck.pre === "fail" ? "bad" : "good", `precondition ${held} after ${recheck.after}`)
}

const choice = ({ choice: made }: Call): Part =>
  made === undefined ? undefined : badge(made.lost ? "bad" : "good", `${made.chosen} is worth most`)

const decision = ({ asked, decision: decided }: Call): Part => {
  if (decided !== undefined) {
    const tone = decided.what === "deny" ? "bad" : decided.what === "allow" && !decided.expired ? "good" : "warn"
    return badge(tone, `${decided.what} by ${decided.by}${decided.expired ? ", expired" : ""}`)
  }
  return asked === true ? badge("warn", "asked, not decided") : undefined
}

const ledger = ({ ledger: kept }: Call): Part => {
  if (kept === undefined) return undefined
  if (kept.replayed) return badge("quiet", "known from before, nothing ran")
  if (kept.outcome === "") return badge("warn", "intent without settlement")
  const tone = kept.outcome === "succeeded" ? "good" : kept.outcome === "failed" ? "bad" : "warn"
  return badge(tone, kept.status === "" ? `effect ${kept.outcome}` : kept.status.replaceAll("_", " "))
}

const escalation = ({ escalated }: Call): Part =>
  escalated === undefined ? undefined : badge("warn", "left to a person: nobody here knows its outcome")

const performed = (call: Call): Part => {
  const { execution } = call
  if (execution === undefined) {
    if (call.malformed === true) return badge("bad", "never became a call")
    if (call.started === true) return badge("warn", "started, no end in the record")
    return call.rejected !== undefined ? badge("bad", "never ran") : badge("quiet", "not executed")
  }
  const time = execution.replayed ? "" : ` in ${duration(execution.millis)}`
  if (execution.ok) return badge("good", `ran${time}`)
  const left = execution.effect === "" || execution.effect === "none" ? "" : `, effect ${execution.effect}`
  const raised = execution.raised === "" ? "" : ` (${execution.raised})`
  return badge("bad", `failed: ${execution.failure}${raised}${time}${left}`)
}

const told = (call: Call): Markup => {
  const { answer, answerText } = call
  const title =
    answer === undefined
      ? "Result"
      : answer.what === "committed"
        ? `What the model was told${answer.cut ? " (shortened: head and tail only)" : ""}`
        : answer.what === "uncommitted"
          ? `Not told to the model: ${answer.reason}`
          : `Skipped: ${answer.reason}`
  if (answerText === undefined) return answer === undefined ? html`` : html`<p class="quiet">${title}</p>`
  return html`<h5>${title}</h5>${answerText}`
}

const reasons = ({ checks: found, rejected }: Call): Part => {
  // A refusal names the cause as its kind.
  const known = found === undefined || found.cause === "" || found.cause === rejected?.kind
  const said = [...(known ? [] : [found.cause]), ...(found?.notes ?? [])]
  const cause = said.length === 0 ? undefined : html`<p class="why">${said.join("; ")}</p>`
  if (rejected === undefined) return cause
  const raised = rejected.raised === "" ? "" : ` (${rejected.raised})`
  return html`${cause}<p class="why"><strong>Refused: ${rejected.kind}</strong>${raised}</p><ul class="why">${rejected.reasons.map(
    (reason) => html`<li>${reason}</li>`
  )}</ul>`
}

/** What was weighed, tried and seen, one line each. */
const course = ({ choice: made, escalated, judgedBy, ledger: kept, tries }: Call): Part => {
  const lines: ReadonlyArray<Part> = [
    ...(made === undefined ? [] : [html`<li>Scores: ${made.scores.join(", ")}</li>`]),
    ...(judgedBy === undefined ? [] : [html`<li>Success was to be judged by ${judgedBy}</li>`]),
    ...(tries ?? []).map((one) => html`<li>${one}</li>`),
    ...(kept?.evidence === undefined ? [] : [html`<li>Evidence: ${kept.evidence}</li>`]),
    ...(escalated ?? []).map((one, at) => html`<li>Try ${at + 1}, ${one}</li>`)
  ]
  return lines.length === 0 ? undefined : html`<ul class="course">${lines}</ul>`
}

export const callCard = (call: Call): Markup => html`<div class="call" id="${call.anchor}" tabindex="-1">
<h4><span class="kind">call</span> <code>${call.malformed === true ? "(not a call)" : call.tool === "" ? "(no tool)" : call.tool}</code>${
  call.id === "" ? undefined : html` <span class="quiet">${call.id}</span>`
}</h4>
<p class="badges">${checks(call)} ${call.risk ? badge("quiet", `risk ${call.risk}`) : undefined} ${choice(call)} ${decision(call)} ${again(call)} ${performed(call)} ${ledger(call)} ${escalation(call)}</p>
${reasons(call)}${course(call)}${call.arguments === undefined ? undefined : html`<h5>Arguments</h5>${call.arguments}`}${
  call.effective === undefined ? undefined : html`<h5>With defaults</h5>${call.effective}`
}${told(call)}${
  call.artifacts.length === 0
    ? undefined
    : html`<p>Wrote ${call.artifacts.map((name, at) => html`${at > 0 ? ", " : ""}<a href="#artifacts"><code>${name}</code></a>`)}</p>`
}${call.late === undefined ? undefined : html`<p class="why">Late outcome, never told: ${call.late}</p>`}
</div>
`
