/**
 * HTML to text that reads well: headings, lists, table rows, links with absolute addresses, no scripts, no navigation, and
 * nothing the page hides. Runs nothing and loads nothing. `html-to-text` does the parsing; it is loaded by the first page.
 */
import * as Effect from "effect/Effect"
import type { DomNode, FormatCallback, HtmlToTextOptions } from "html-to-text"
import { indented } from "./Indented.ts"
import { isDeeper } from "./Nesting.ts"
import { failed, type WebFault } from "./WebFault.ts"

/** UTF-16 units of HTML that are looked at, and how deep elements may be nested. */
const maxHtmlLength = 1_000_000
const maxHtmlDepth = 1_000

/** Depth below which the library stops to write text: it calls itself for each level. */
const maxTextDepth = 500

const heading: FormatCallback = (element, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 2 })
  builder.addInline(`${"#".repeat(Number(element.name?.slice(1) ?? 1))} `, {})
  walk(element.children, builder)
  builder.closeBlock({ trailingLineBreaks: 2 })
}

/** A row is a line: a real table would let `colspan` decide how much memory it takes. */
const row: FormatCallback = (element, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 1 })
  walk(element.children, builder)
  builder.closeBlock({ trailingLineBreaks: 1 })
}

const cell: FormatCallback = (element, walk, builder) => {
  walk(element.children, builder)
  builder.addInline(" | ", {})
}

const picture: FormatCallback = (element: DomNode & { attribs?: Record<string, string> }, _walk, builder) => {
  const text = element.attribs?.["alt"]?.trim() ?? ""
  if (text !== "") builder.addInline(`[image: ${text}]`, {})
}

/** A text may hide instructions from people: what a page does not show is not told either. */
const hidden = [
  "[hidden]",
  "[aria-hidden=true]",
  "[style*='display:none'i]",
  "[style*='display: none'i]",
  "[style*='visibility:hidden'i]",
  "[style*='visibility: hidden'i]"
]
const skipped = "head,script,style,noscript,template,nav,svg,iframe,object,canvas,select,button".split(",")

/** Most UTF-16 units of addresses in one text: a long address of the page makes each of its short links a long one. */
const maxLinksLength = 1_000_000

const linkTo = (base: string) => {
  let left = maxLinksLength
  return (path: string) => {
    const url = URL.parse(path, base)
    if (url?.protocol !== "https:" && url?.protocol !== "http:") return ""
    left -= url.href.length
    return left < 0 ? "" : url.href
  }
}

const optionsFor = (base: string, main: boolean): HtmlToTextOptions => ({
  wordwrap: false,
  baseElements: { selectors: main ? ["main", "[role=main]"] : ["body"], orderBy: "occurrence" },
  limits: { maxDepth: maxTextDepth },
  formatters: { heading, row, cell, picture, ...indented() },
  selectors: [
    ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({ selector, format: "heading" })),
    { selector: "table", format: "block" },
    { selector: "tr", format: "row" },
    { selector: "td", format: "cell" },
    { selector: "th", format: "cell" },
    { selector: "img", format: "picture" },
    { selector: "ul", format: "unordered", options: { itemPrefix: "- " } },
    { selector: "ol", format: "ordered" },
    { selector: "blockquote", format: "quotation" },
    {
      selector: "a",
      options: { pathRewrite: linkTo(base), hideLinkHrefIfSameAsText: true, noAnchorUrl: true } as never
    },
    ...[...skipped, ...hidden].map((selector) => ({ selector, format: "skip" }))
  ]
})

/** Without a pattern: one that looks for spaces before an end takes the square of their number where it finds none. */
const withoutEnd = (line: string): string => {
  let end = line.length
  while (line[end - 1] === " " || line[end - 1] === "\t") end -= 1
  return line.slice(0, end)
}

/** A line without the spaces at its end, and without the stroke after the last cell of a row. */
const tidyLine = (line: string): string => {
  const text = withoutEnd(line)
  return text.endsWith("|") ? withoutEnd(text.slice(0, -1)) : text
}

const tidy = (text: string): string =>
  text
    .split("\n")
    .map(tidyLine)
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim()

/** The text of a page at `base`; its main part where it says which that is. */
export const readable = Effect.fnUntraced(function* (html: string, base: string): Effect.fn.Return<string, WebFault> {
  const whole = html.length <= maxHtmlLength
  const looked = whole ? html : html.slice(0, maxHtmlLength)
  if (yield* isDeeper(looked, maxHtmlDepth)) {
    return yield* failed(`the page nests its elements deeper than ${maxHtmlDepth} levels and is not read`)
  }
  const { convert } = yield* Effect.promise(() => import("html-to-text"))
  const text = tidy(convert(looked, optionsFor(base, true))) || tidy(convert(looked, optionsFor(base, false)))
  if (text === "") return "(the page shows no text without running its scripts)"
  return whole ? text : `${text}\n\n(the page goes on; its first ${maxHtmlLength} characters were read)`
})

/** A short piece of text that may hold tags and entities, as one line. */
export const oneLine = Effect.fnUntraced(function* (text: string, most: number): Effect.fn.Return<string> {
  let plain = text.slice(0, 20_000)
  if (/<\/?[a-z!]|&[#a-z\d]+;/i.test(plain) && !(yield* isDeeper(plain, maxHtmlDepth))) {
    const { convert } = yield* Effect.promise(() => import("html-to-text"))
    plain = convert(plain, { wordwrap: false, selectors: [{ selector: "a", options: { ignoreHref: true } }] })
  }
  const line = plain.replace(/[\s\u0000-\u001f\u007f\u2028\u2029]+/g, " ").trim()
  if (line.length <= most) return line
  return `${line
    .slice(0, most)
    .toWellFormed()
    .replace(/\ufffd$/u, "")}…`
})
