/**
 * Puts the parts of a report into one page that needs nothing but itself. Its policy lets it load nothing, and run and
 * use only the script and the style that are written in it.
 */
import { createHash } from "node:crypto"
import { type Events, kindNames } from "./EventTable.ts"
import { html, inAttribute, inText, type Markup, number } from "./Markup.ts"
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

const source = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** What the page may do: nothing but its own style and script. */
export const policy = [
  "default-src 'none'",
  `style-src ${source(style)}`,
  `script-src ${source(script)}`,
  "base-uri 'none'",
  "form-action 'none'"
].join("; ")

const sections = ["Summary", "Timeline", "Conversation", "Artifacts", "Limits", "Problems", "Events"]

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

function* head(title: string): Iterable<string> {
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${inAttribute(policy).replaceAll("&#39;", "'")}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no">
<title>${inAttribute(title)}</title>
<style>${style}</style>
</head>
<body>
<a class="skip" href="#summary">Skip to the summary</a>
<header><h1>${inText(title)}</h1></header>
<nav aria-label="Parts of the report"><ul>`
  for (const name of sections) yield `<li><a href="#${name.toLowerCase()}">${name}</a></li>`
  yield "</ul></nav>\n<main>\n"
}

const section = (name: string, body: Markup): string =>
  `<section id="${name.toLowerCase()}" aria-labelledby="h-${name.toLowerCase()}"><h2 id="h-${name.toLowerCase()}">${name}</h2>
${body.value}</section>
`

function* eventsSection({ count, missing, packed, rows, shown }: Events): Iterable<string> {
  const long = packed.length > 0
  const toPrint = count <= printedRows
  const few = missing === 0 ? "" : ` ${number(missing)} of them are in the trace only.`
  yield `<section id="events" aria-labelledby="h-events"><h2 id="h-events">Events</h2>
<p class="quiet">${number(count)} events.${few}${
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
export function* page(parts: Parts): Iterable<string> {
  const { artifacts, conversation, digest, events, limits, problems, summary, timeline, title } = parts
  yield* head(title)
  yield section("Summary", summary)
  yield section("Timeline", timeline)
  yield section("Conversation", conversation)
  yield section("Artifacts", artifacts)
  yield section("Limits", limits)
  yield section("Problems", problems)
  yield* eventsSection(events)
  yield `</main>
<footer>
<p>Made from a trace of SHA-256 <code>${inText(digest)}</code>. A report shows what the record says; it proves nothing that the record does not.</p>
</footer>
<script>${script}</script>
</body>
</html>
`
}
