/**
 * What every page of ours has around its parts: a head whose policy lets the page load nothing, and run and use only the
 * script and the style that are written in it; the way to each part; the end. Knows nothing of what the parts say.
 */
import { createHash } from "node:crypto"
import { inAttribute, inText, type Markup } from "./Markup.ts"

/** Style and script of a page, as they are written in it. */
export interface Own {
  readonly style: string
  readonly script: string
}

const source = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** What a page may do: nothing but its own style and script. */
export const policyOf = ({ script, style }: Own): string =>
  [
    "default-src 'none'",
    `style-src ${source(style)}`,
    `script-src ${source(script)}`,
    "base-uri 'none'",
    "form-action 'none'"
  ].join("; ")

/** Everything before the parts. The first part is the summary. */
export function* head(
  title: string,
  own: Own,
  parts: Iterable<readonly [id: string, title: string]>
): Iterable<string> {
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${inAttribute(policyOf(own)).replaceAll("&#39;", "'")}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no">
<title>${inAttribute(title)}</title>
<style>${own.style}</style>
</head>
<body>
<a class="skip" href="#summary">Skip to the summary</a>
<header><h1>${inText(title)}</h1></header>
<nav aria-label="Parts of the report"><ul>`
  for (const [id, name] of parts) yield `<li><a href="#${id}">${name}</a></li>`
  yield "</ul></nav>\n<main>\n"
}

/** How a part begins that is not made at once; `</section>` ends it. */
export const sectionStart = (id: string, title: string): string =>
  `<section id="${id}" aria-labelledby="h-${id}"><h2 id="h-${id}">${title}</h2>\n`

/** A part as a whole. */
export const section = (id: string, title: string, body: Markup): string =>
  `${sectionStart(id, title)}${body.value}</section>\n`

/** Everything behind the parts. */
export const foot = (footer: string, { script }: Own): string => `</main>
<footer>${footer}</footer>
<script>${script}</script>
</body>
</html>
`
