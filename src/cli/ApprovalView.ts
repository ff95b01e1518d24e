/**
 * What somebody is asked to approve, as lines: tool, risk, every argument, cost and hazard, whether it can be undone, by what
 * success will be judged, what would change. All of it is other people's text: it is shown inside its own margin, so that no
 * line of it can pass for one of ours.
 */
import type { ApprovalRequest } from "../effects/Policy.ts"
import type { Evidence, RiskLevel } from "../tools/Contract.ts"
import type { Json } from "../tools/JsonText.ts"
import { block, inline } from "./Printable.ts"
import type { Paint } from "./Screen.ts"

const risks: Readonly<Record<RiskLevel, string>> = {
  read: "it only reads",
  "local-write": "it changes files of this run",
  external: "it reaches outside"
}

const sources: Readonly<Record<Evidence["source"], string>> = {
  self: "the tool's own word",
  probe: "a look by the runtime",
  sensor: "another system",
  person: "a person"
}

/** Most lines of a preview that are shown. Arguments are always shown whole: what is approved must have been seen. */
const previewLines = 200

/** Columns a character takes: two from where the wide scripts begin, which is never too few. */
const columnsOf = (character: string): number => (character.codePointAt(0)! >= 0x1100 ? 2 : 1)

const widthOf = (text: string): number => [...text].reduce((columns, character) => columns + columnsOf(character), 0)

/** A line in pieces of at most `width` columns that spell it together: cut behind a space, unless half of it would be left free. */
const pieces = (line: string, width: number): ReadonlyArray<string> => {
  const out: Array<string> = []
  let [piece, columns] = ["", 0]
  for (const character of line.replaceAll("\t", "    ")) {
    const wide = columnsOf(character)
    // A space may stand in the last column of the screen, which is left free otherwise.
    if (columns + wide > width && !(character === " " && columns === width)) {
      const begun = piece.slice(piece.lastIndexOf(" ") + 1)
      const rest = widthOf(begun) * 2 > width ? "" : begun
      out.push(piece.slice(0, piece.length - rest.length))
      piece = rest
      columns = widthOf(rest)
    }
    piece += character
    columns += wide
  }
  return [...out, piece]
}

/** Text of any length inside a margin. */
const within = (text: string, margin: string, columns: number): ReadonlyArray<string> =>
  block(text)
    .split("\n")
    .flatMap((line) => pieces(line, Math.max(20, columns - margin.length - 1)))
    .map((piece) => `${margin}${piece}`)

const argument = (name: string, value: Json, columns: number): ReadonlyArray<string> => {
  if (typeof value === "string" && value.includes("\n")) {
    return [`      ${inline(name)}:`, ...within(value, "      │ ", columns)]
  }
  const [first = "", ...rest] = within(`${inline(name)}: ${JSON.stringify(value, undefined, 2)}`, "        ", columns)
  return [first.slice(2), ...rest]
}

const previewOf = (preview: string, paint: Paint, columns: number): ReadonlyArray<string> => {
  const lines = preview.replace(/\n$/, "").split("\n")
  const shown = lines.slice(0, previewLines).flatMap((line) => {
    const colour = line.startsWith("+") ? paint.green : line.startsWith("-") ? paint.red : (text: string) => text
    return within(line, "      ", columns).map(colour)
  })
  const left = lines.length - previewLines
  return left > 0 ? [...shown, paint.dim(`      … (${left} more lines)`)] : shown
}

/** The call somebody decides about. `columns`: the width there is. */
export const approvalLines = (request: ApprovalRequest, paint: Paint, columns: number): ReadonlyArray<string> => {
  const { cost, evidence, hazard, preview, reversible, risk, tool } = request
  const field = (name: string, text: string) => {
    const [first = "", ...rest] = within(text, " ".repeat(15), columns)
    return [`    ${paint.dim(name.padEnd(10))} ${first.slice(15)}`, ...rest]
  }
  const entries = Object.entries(request.arguments)
  const prices = [...(cost === 0 ? [] : [`cost ${cost}`]), ...(hazard === 0 ? [] : [`hazard ${hazard}`])]
  return [
    `  ${paint.yellow("?")} The model wants to call ${paint.bold(inline(tool))}: ${risks[risk]} (${risk}).`,
    ...(entries.length === 0 ? field("arguments", "none") : [`    ${paint.dim("arguments")}`]),
    ...entries.flatMap(([name, value]) => argument(name, value, columns)),
    ...(prices.length === 0 ? [] : field("price", prices.join(", "))),
    ...field("undo", reversible ? "what it does can be undone" : "what it does cannot be undone"),
    ...field("judged by", `${sources[evidence.source]}: ${evidence.describes}`),
    ...(preview === undefined ? [] : [`    ${paint.dim("changes")}`, ...previewOf(preview, paint, columns)])
  ]
}
