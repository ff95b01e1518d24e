/** `writ tools check`: what is amiss in the contracts of tools, each with its remedy. Ends with 3 where something is. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { endWith, inJson } from "./Ending.ts"
import { count, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"
import { type Finding, findingsOf } from "./ToolFindings.ts"
import { bySource, type ToolFlags } from "./Toolkits.ts"

/** Words of a sentence on as many lines as it takes, after `margin`. */
export const folded = (text: string, margin: string, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of inline(text).split(" ")) {
    if (line !== "" && margin.length + line.length + 1 + word.length > columns) {
      lines.push(margin + line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, margin + line]
}

const linesOf = (findings: ReadonlyArray<Finding>, { columns, paint }: Screen.Screen): ReadonlyArray<string> =>
  findings.flatMap(({ code, remedy, tool, what }) => [
    `${paint.bold(inline(tool))}: ${paint.red(code.replaceAll("_", " "))}`,
    ...folded(what, "  ", columns),
    ...folded(`→ ${remedy}`, "  ", columns).map(paint.dim)
  ])

export const check = (flags: ToolFlags) =>
  Effect.gen(function* () {
    const {
      files,
      registry: { tools }
    } = yield* bySource(flags)
    const findings = tools.flatMap((tool) => findingsOf(tool, files.has(tool.name)))
    const screen = yield* Screen.make(flags.color)
    if (flags.json) {
      yield* Console.log(jsonText({ tools: tools.map(({ name }) => name), findings }))
    } else {
      for (const line of linesOf(findings, screen)) screen.line(line)
      const said =
        findings.length === 0
          ? screen.paint.green("nothing amiss")
          : screen.paint.red(count(findings.length, "finding"))
      screen.line(`${findings.length === 0 ? "" : "\n"}${count(tools.length, "tool")}: ${said}`)
    }
    yield* endWith(findings.length === 0 ? 0 : 3)
  }).pipe(inJson(flags.json))
