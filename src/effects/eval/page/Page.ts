/**
 * An evaluation as one HTML page that needs nothing but itself: summary, matrix, conversations, and for each what was asserted,
 * said and done. Texts and lists have bounds, so that the page of a large evaluation can be opened; what is left out is said.
 */
import { html, type Markup, number, Room } from "../../trace/report/Markup.ts"
import { foot, head, policyOf, section, sectionStart } from "../../trace/report/PageFrame.ts"
import type { Evaluated } from "../Evaluation.ts"
import { interval, percent } from "../Markdown.ts"
import { type Report, sizeOf } from "../Report.ts"
import { wilson } from "../Statistics.ts"
import { outcomes } from "../Verdict.ts"
import { details, stateOf } from "./Details.ts"
import { heatMap } from "./HeatMap.ts"
import { countOf, heatOf, type Row, rowsOf, shareText } from "./Rows.ts"
import { script } from "./Script.ts"
import { style } from "./Style.ts"

/** Characters of conversations on one page. */
const roomOf = 8_000_000
/** Conversations with details, those that are not green first. */
const mostDetails = 400
/** Rows of the table of conversations. */
const mostRows = 5_000

const own = { script, style }

/** What the page may do: nothing but its own style and script. */
export const policy = policyOf(own)

const figure = (name: string, value: string | number): Markup => html`<div><dt>${name}</dt><dd>${value}</dd></div>`

const lead = ({ totals }: Report): Markup => {
  const { deferred, errored, failed, malformed, passed } = totals.assertions
  if (failed + malformed + errored > 0) return html`<span class="badge bad">not passed</span>`
  if (deferred > 0) return html`<span class="badge warn">not all decided</span>`
  return passed > 0
    ? html`<span class="badge good">passed</span>`
    : html`<span class="badge bad">nothing asserted</span>`
}

const summary = (report: Report): Markup => {
  const { assertions, conversations_matched } = report.totals
  const tries = sizeOf(assertions) - assertions.deferred
  const { metrics } = report
  return html`<p class="lead badges">${lead(report)}</p>
<dl class="figures">${figure("conversations", number(conversations_matched))}${figure("passed", number(assertions.passed))}${figure("failed", number(assertions.failed))}${figure("deferred", number(assertions.deferred))}${figure("malformed", number(assertions.malformed))}${figure("errored", number(assertions.errored))}</dl>
<dl class="about"><div><dt>pass rate</dt><dd>${percent(assertions.passed, tries)} of ${number(tries)} decided assertions, 95 % interval ${interval(wilson(assertions.passed, tries))}</dd></div>
<div><dt>run</dt><dd>${report.run_id}</dd></div>
<div><dt>evaluated</dt><dd>${report.timestamp}</dd></div>
${report.model === undefined ? undefined : html`<div><dt>model</dt><dd>${report.model}</dd></div>`}
${
  metrics === undefined
    ? undefined
    : html`<div><dt>cost</dt><dd>${number(metrics.total_input_tokens)} tokens in, ${number(metrics.total_output_tokens)} out, ${number(Math.round(metrics.total_latency_ms))} ms, by ${metrics.conversations_with_trace} conversations with traces</dd></div>`
}</dl>
<div class="scroll"><table><thead><tr><th>class</th>${outcomes.map((one) => html`<th class="n">${one}</th>`)}</tr></thead><tbody>
${Object.entries(report.per_class).map(
  ([kind, tally]) =>
    html`<tr><td class="name">${kind}</td>${[tally.passed, tally.failed, tally.deferred, tally.malformed, tally.errored].map((n) => html`<td class="n">${n}</td>`)}</tr>\n`
)}</tbody></table></div>`
}

const filter = html`<form id="filter" hidden>
<div><label for="search">Search the conversations (press / to get here)</label><input id="search" type="search" autocomplete="off" spellcheck="false"></div>
<div><label for="outcome">With an assertion that is</label><select id="outcome"><option value="">anything</option>${outcomes.map((one) => html`<option value="${one}">${one}</option>`)}</select></div>
<button type="reset">Clear</button>
<p id="found" role="status"></p>
</form>
`

const amount = (value: number | undefined): string => (value === undefined ? "–" : number(Math.round(value)))

const conversationRow = (row: Row, classes: ReadonlyArray<string>, shown: ReadonlySet<string>): Markup => {
  const has = outcomes.filter((one) => countOf(row.decided, one) > 0).map((one) => `has-${one}`)
  const name = shown.has(row.id) ? html`<a href="#${row.id}">${row.name}</a>` : row.name
  return html`<tr class="${has.join(" ")}"><td class="name">${name}</td>${classes.map((kind) => {
    const own = row.decided.filter((one) => one.class === kind)
    return own.length === 0 ? html`<td></td>` : html`<td class="share h${heatOf(own)}">${shareText(own)}</td>`
  })}<td class="n">${amount(row.metrics?.total_input_tokens)}</td><td class="n">${amount(row.metrics?.total_output_tokens)}</td><td class="n">${amount(row.metrics?.total_latency_ms)}</td></tr>
`
}

const conversations = (rows: ReadonlyArray<Row>, classes: ReadonlyArray<string>, shown: ReadonlySet<string>): Markup =>
  html`${filter}<div class="scroll"><table class="wide"><thead><tr><th>conversation</th>${classes.map(
    (kind) => html`<th class="share">${kind.replaceAll("_", " ")}</th>`
  )}<th class="n">tokens in</th><th class="n">out</th><th class="n">ms</th></tr></thead><tbody>
${rows.slice(0, mostRows).map((row) => conversationRow(row, classes, shown))}</tbody></table></div>
${rows.length > mostRows ? html`<p class="cut">${number(rows.length - mostRows)} more conversations are in the JSON.</p>` : undefined}`

const notPassed = (rows: ReadonlyArray<Row>, shown: ReadonlySet<string>): Markup => {
  const bad = rows.flatMap((row) =>
    row.decided.filter(({ verdict }) => verdict.outcome !== "pass").map((one) => ({ row, one }))
  )
  if (bad.length === 0) return html`<p>Everything passed.</p>`
  const room = new Room(400_000)
  const line = ({ one, row }: (typeof bad)[number]) =>
    html`<li><span class="${one.verdict.outcome}">${one.verdict.outcome}</span> ${
      shown.has(row.id) ? html`<a href="#${row.id}">${row.name}</a>` : row.name
    } ${one.case} #${one.ordinal} ${one.class}: ${room.line(one.verdict.reason ?? "", 240)}</li>\n`
  return html`<ul class="problems">
${bad.slice(0, 200).map(line)}</ul>${bad.length > 200 ? html`<p class="cut">${number(bad.length - 200)} more are in the JSON.</p>` : undefined}`
}

const parts: ReadonlyArray<readonly [id: string, title: string]> = [
  ["summary", "Summary"],
  ["matrix", "Matrix"],
  ["failures", "Not passed"],
  ["conversations", "Conversations"],
  ["details", "Details"]
]

/** The page in pieces, in order. */
export function* page(report: Report, evaluated: Evaluated): Iterable<string> {
  const rows = rowsOf(evaluated)
  const byState = (state: string) => rows.filter(({ decided }) => stateOf(decided) === state)
  const detailed = new Set([...byState("red"), ...byState("open"), ...byState("green")].slice(0, mostDetails))
  const shown = new Set([...detailed].map(({ id }) => id))
  yield* head(`${report.suite} over ${report.run_id}`, own, parts)
  yield section("summary", "Summary", summary(report))
  yield section("matrix", "Matrix", heatMap(rows, shown))
  yield section("failures", "Not passed", notPassed(rows, shown))
  yield section("conversations", "Conversations", conversations(rows, Object.keys(report.per_class), shown))
  yield `${sectionStart("details", "Details")}<div class="${shown.size > 50 ? "long" : ""}">`
  if (rows.length > detailed.size) {
    yield `<p class="cut">${number(detailed.size)} of ${number(rows.length)} conversations, those that did not pass first.</p>`
  }
  const room = new Room(roomOf)
  for (const row of rows) if (detailed.has(row)) yield details(row, room).value
  yield "</div></section>\n"
  yield foot(
    "<p>Deferred assertions are not decided, and not counted as tries. A cell like 3/4 +1? has passed 3 of 4, with one deferred.</p>",
    own
  )
}
