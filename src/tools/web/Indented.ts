/**
 * What stands before every line of a list or a quotation, in bounds: `html-to-text` writes what is in one once more for each
 * level it is nested in, and has no Roman number after 3999. One of these is for one page: it counts the levels it is in.
 */
import type { DomNode, FormatCallback } from "html-to-text"

/** Levels that show. What is nested deeper stands where these end. */
const maxLevels = 12

/** The last number that every form of list can write. */
const maxNumber = 3999

const isWholeNumber = (text: string): boolean => /^-?\d{1,9}$/.test(text)

/** Takes away what a list says about its numbers where they cannot be written so. */
const countable = ({ attribs, children }: DomNode): void => {
  const start = attribs?.["start"] ?? "1"
  if (!isWholeNumber(start)) delete attribs["start"]
  const first = isWholeNumber(start) ? Number(start) : 1
  if (first < 1 || first + children.length > maxNumber) delete attribs["type"]
}

export const indented = (): Readonly<Record<"ordered" | "unordered" | "quotation", FormatCallback>> => {
  let level = 0
  /** As the library writes it, or, too deep inside, with a line of its own for each part and nothing before it. */
  const bounded =
    (format: string): FormatCallback =>
    (element, walk, builder, options) => {
      if (level < maxLevels) {
        level += 1
        builder.options.formatters[format]!(element, walk, builder, options)
        level -= 1
        return
      }
      builder.openBlock({ leadingLineBreaks: 1 })
      for (const part of element.children) {
        const isItem = part.name === "li"
        if (isItem) builder.openBlock({ leadingLineBreaks: 1 })
        walk([part], builder)
        if (isItem) builder.closeBlock({ trailingLineBreaks: 1 })
      }
      builder.closeBlock({ trailingLineBreaks: 1 })
    }
  const numbered = bounded("orderedList")
  return {
    ordered: (element, walk, builder, options) => {
      countable(element)
      numbered(element, walk, builder, options)
    },
    unordered: bounded("unorderedList"),
    quotation: bounded("blockquote")
  }
}
