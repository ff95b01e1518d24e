/**
 * Text of a model for somebody who reads it on a terminal. What acts or hides is shown by its code, as everywhere
 * (`Printable`), but not the few invisible characters that writing needs: joiners between letters of scripts that are written
 * with them, joiners inside emoji, and marks of direction in a word that is written from right to left. What turns other
 * text around (embeddings, overrides, isolates) is never among them.
 */
import { codeOf, unseen } from "../effects/trace/Unseen.ts"
import { hasRightToLeft } from "./Columns.ts"

/** Scripts whose spelling uses joiners and non-joiners. */
const joined =
  "\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Mong}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}"
const beforeJoiner = new RegExp(`(?=[\\p{L}\\p{M}])[${joined}]$`, "u")
const afterJoiner = new RegExp(`^(?=[\\p{L}\\p{M}])[${joined}]`, "u")
const pictureBefore = /(?:\p{Extended_Pictographic}|\ufe0f|[\u{1f3fb}-\u{1f3ff}])$/u
const pictureAfter = /^\p{Extended_Pictographic}/u

const isDirectionMark = (character: string | undefined): boolean =>
  character === "\u200e" || character === "\u200f" || character === "\u061c"

/** The few units around a place in a text: enough for a whole character on either side. */
const around = (text: string, at: number): readonly [string, string] => [
  text.slice(Math.max(0, at - 2), at),
  text.slice(at + 1, at + 3)
]

/**
 * Does the writing need this invisible character here? One at a time: a row of them says nothing a reader could want.
 * @param turned is any letter of the text written from right to left?
 */
const needed = (character: string, at: number, text: string, turned: () => boolean): boolean => {
  const [before, after] = around(text, at)
  if (character === "\u200c") return beforeJoiner.test(before) && afterJoiner.test(after)
  if (character === "\u200d") {
    if (beforeJoiner.test(before)) return afterJoiner.test(after)
    return pictureBefore.test(before) && pictureAfter.test(after)
  }
  return isDirectionMark(character) && !isDirectionMark(before.at(-1)) && turned()
}

/** A word (or any text without line ends) as it may be written to a terminal. Give it whole: what is needed depends on its neighbours. */
export const readable = (text: string): string => {
  if (!/[^ -~]/.test(text)) return text
  let found: boolean | undefined
  // Looked for once: a text may have as many marks as letters.
  const turned = () => (found ??= hasRightToLeft(text))
  return text.replace(unseen, (character: string, at: number) =>
    needed(character, at, text, turned) ? character : codeOf(character)
  )
}

/** The same in one line: line ends and tabs as `\n` and `\t`. */
export const readableLine = (text: string): string =>
  text.split(/([\n\t ])/).reduce((line, part) => {
    if (part === "\n") return `${line}\\n`
    return part === "\t" ? `${line}\\t` : line + readable(part)
  }, "")
