/**
 * Puts the parts of a report into one page that needs nothing but itself. Its policy lets it load nothing, and run and
 * use only the script and the style that are written in it.
 */
import { type Events, kindNames } from "./EventTable.ts"
import { html, inText, type Markup, number } from "./Markup.ts"
import { foot, head, section, sectionStart } from "./PageFrame.ts"
import { script } from "./Script.ts"
import { style } from "./Style.ts"

export interface Parts {
  readonly title: string
  readonly summary: Markup
  readonly timeline: Markup
  readonly conversation: Markup
  readonly artifacts: Markup
  readonly limits: Markup
  readonly problems: Markup
  readonly events: Events
  /** SHA-256 of the trace's bytes. */
  readonly digest: string
}

const own = { script, style }

const titles = ["Summary", "Timeline", "Conversation", "Artifacts", "Limits", "Problems", "Events"]

const parts = titles.map((title) => [title.toLowerCase(), title] as const)

/** Rows that are worth their paper. */
const printedRows = 500

const filter = html`<form id="filter" hidden>
<div><label for="search">Search the events (press / to get here)</label><input id="search" type="search" autocomplete="off" spellcheck="false"></div>
<div><label for="kind">Show</label><select id="kind"><option value="">everything</option><option value="failed">what failed</option>${kindNames.map(
  (kind) => html`<option value="${kind}">${kind}</option>`
)}</select></div>
<button type="reset">Clear</button>
<p id="found" role="status"></p>
</form>
`

/** Pages of a long table: the script shows them, and turns them. */
const pager = (place: "above" | "below"): Markup => {
  const goTo =
    place === "below"
      ? undefined
      : html`<label>Go to event <input type="number" min="0" inputmode="numeric" autocomplete="off"></label>`
  return html`<div class="pager ${place}" role="group" aria-label="Pages of the table, ${place}" hidden>
<button type="button" data-to="first">First</button><button type="button" data-to="back">Back</button><span class="extent"></span><button type="button" data-to="on">Next</button><button type="button" data-to="last">Last</button>${goTo}
</div>
`
}

function* eventsSection({ count, missing, packed, rows, shown }: Events): Iterable<string> {
  const long = packed.length > 0
  const toPrint = count <= printedRows
  const few = missing === 0 ? "" : ` ${number(missing)} of them are in the trace only.`
  yield `${sectionStart("events", "Events")}<p class="quiet">${number(count)} events.${few}${
    long
      ? `<span id="left-out"> The first and last ${number(shown)} stand here; the page’s script shows all.</span>`
      : ""
  }</p>
${toPrint ? "" : '<p class="paper">The table of events is too long to print.</p>\n'}${filter.value}${
  long ? pager("above").value : ""
}<div class="rows${toPrint ? "" : " long"}">
`
  for (const row of rows) yield row.value
  yield "</div>\n"
  if (long) yield pager("below").value
  for (const block of packed) yield block.value
  yield "</section>\n"
}

/** The page in pieces, in order. */
export function* page(made: Parts): Iterable<string> {
  const { artifacts, conversation, digest, events, limits, problems, summary, timeline, title } = made
  yield* head(title, own, parts)
  yield section("summary", "Summary", summary)
  yield section("timeline", "Timeline", timeline)
  yield section("conversation", "Conversation", conversation)
  yield section("artifacts", "Artifacts", artifacts)
  yield section("limits", "Limits", limits)
  yield section("problems", "Problems", problems)
  yield* eventsSection(events)
  yield foot(
    `\n<p>Made from a trace of SHA-256 <code>${inText(digest)}</code>. A report shows what the record says; it proves nothing that the record does not.</p>\n`,
    own
  )
}
