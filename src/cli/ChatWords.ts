/** The few words of a chat that are for the program and not for the model, and what it says to them. */
import type { Outcome } from "../effects/Outcome.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Registry } from "../tools/Registry.ts"
import type { Left } from "./ChatEffects.ts"
import type { Exchange } from "./ChatSession.ts"
import { fitted } from "./Columns.ts"
import { quoted } from "./Continuing.ts"
import { count, duration, inline } from "./Printable.ts"
import { readableLine } from "./Readable.ts"
import { argumentsText, stopText } from "./RunWords.ts"
import type { Screen } from "./Screen.ts"
import { wrapped } from "./WordWrap.ts"

const words = {
  help: "this list",
  tools: "what the model may call",
  trace: "where the record of the last message is, and what it cost",
  undo: "takes the last message and its answer back; what tools did stays done",
  new: "begins a new conversation",
  exit: "leaves; so does Ctrl-D"
} as const

export type Word = keyof typeof words

/** As they are typed. */
export const spelled: ReadonlyArray<string> = Object.keys(words).map((word) => `/${word}`)

export type Read =
  | { readonly _tag: "Message"; readonly text: string }
  | { readonly _tag: "Word"; readonly word: Exclude<Word, "exit"> }
  | { readonly _tag: "Exit" }
  | { readonly _tag: "Unknown"; readonly word: string }

/** A line that ends with a backslash, but not with two: the message goes on in the next one. */
export const goesOn = (line: string): boolean => /(?<!\\)\\$/.test(line)

/** A word is for the program if it stands alone. A message that would be one is written with two slashes. */
export const read = (line: string): Read => {
  const word = /^\/([A-Za-z]+)$/.exec(line.trim())?.[1]?.toLowerCase()
  if (word === undefined)
    return { _tag: "Message", text: /^\s*\/\/[A-Za-z]+\s*$/.test(line) ? line.replace("/", "") : line }
  if (word === "exit" || word === "quit") return { _tag: "Exit" }
  return Object.hasOwn(words, word) ? { _tag: "Word", word: word as Exclude<Word, "exit"> } : { _tag: "Unknown", word }
}

type Look = Pick<Screen, "columns" | "paint">

/** A name and what is said of it, which goes on below itself. */
const row = (name: string, text: string, { columns, paint }: Look): ReadonlyArray<string> =>
  wrapped(text, columns - 10)
    .split("\n")
    .map((line, at) => `  ${at === 0 ? paint.cyan(name.padEnd(7)) : " ".repeat(7)} ${line}`)

export const helpLines = (look: Look): ReadonlyArray<string> => [
  ...Object.entries(words).flatMap(([word, text]) => row(`/${word}`, text, look)),
  "",
  ...row("\\", "at the end of a line: the message goes on", look),
  ...row("Ctrl-C", "stops the model; twice at an empty prompt, leaves", look)
]

/** A description that would be narrower than this has lines of its own. */
const leastColumns = 30

/** Lines of a description that are shown. What a server says of its tools may be a page. */
const mostLines = 3

/** A description behind a margin, wrapped at words. */
const described = (about: string, columns: number): ReadonlyArray<string> =>
  wrapped(fitted(about, mostLines * columns - columns / 2), columns).split("\n")

export const toolLines = (registry: Registry, { columns, paint }: Look): ReadonlyArray<string> => {
  if (registry.tools.length === 0) return ["  The model has no tools."]
  const named = registry.tools.map(({ contract, name, spec }) => ({
    name: inline(name),
    risk: contract.risk,
    about: readableLine(spec.description)
  }))
  const width = Math.max(...named.map(({ name }) => name.length))
  const riskWidth = Math.max(...named.map(({ risk }) => risk.length))
  const indented = width + riskWidth + 6
  const beside = columns - indented >= leastColumns
  return named.flatMap(({ about, name, risk }) => {
    const painted = (text: string) => (risk === "external" ? paint.yellow : paint.dim)(text)
    const shown = `  ${name.padEnd(width)}  ${painted(beside ? risk.padEnd(riskWidth) : risk)}`
    const margin = beside ? indented : 4
    const [first = "", ...rest] = described(about, columns - margin).map((line) => `${" ".repeat(margin)}${line}`)
    return beside ? [`${shown}  ${first.slice(margin)}`, ...rest] : [shown, first, ...rest]
  })
}

/** What a run took, in a line. */
const spentText = ({ millis, toolCalls, turns, usage }: Outcome): string =>
  `${count(turns, "turn")}, ${count(toolCalls, "call")}, ${count(usage.outputTokens, "token")}, ${duration(millis.total)}`

/** A path and a command stay whole, whatever the width: the terminal wraps what is to be copied. */
export const traceLines = (last: Outcome | undefined, { columns, paint }: Look): ReadonlyArray<string> => {
  if (last === undefined) return ["  Nothing was said yet."]
  if (last.tracePath === undefined) return ["  The last message has no record."]
  const path = RunDirectory.shown(last.tracePath)
  return [
    ...wrapped(`  ${inline(stopText(last.stop))}: ${spentText(last)}`, columns).split("\n"),
    `  ${inline(path)}`,
    `  ${paint.bold(`npx writ trace inspect ${quoted(last.runId)}`)}`
  ]
}

const leftLine = (left: Left, { columns, paint }: Look): ReadonlyArray<string> => {
  const state = left.certain ? "" : "may have happened: "
  const tool = inline(left.tool)
  const shown = fitted(
    readableLine(argumentsText(left.arguments)),
    Math.max(0, columns - state.length - tool.length - 5)
  )
  return [
    `  ${paint.yellow(left.certain ? "•" : "?")} ${state}${paint.bold(tool)} ${shown}`,
    ...left.artifacts.flatMap(({ path }) => (path === undefined ? [] : [`    ${inline(RunDirectory.shown(path))}`])),
    ...(left.compensation === undefined ? [] : [`    ${paint.dim(`can be undone by ${inline(left.compensation)}`)}`])
  ]
}

/** What was taken back, and what was not. */
export const undoneLines = (exchange: Exchange | undefined, look: Look): ReadonlyArray<string> => {
  if (exchange === undefined) return ["  There is nothing to take back."]
  const { left, message } = exchange
  const taken = `  Taken back: ${fitted(readableLine(message), look.columns - 14)}`
  if (left.length === 0) return [taken]
  return [taken, `  What was done stays done:`, ...left.flatMap((one) => leftLine(one, look))]
}
