/**
 * Text from models, files and traces on its way to a terminal: control characters are shown, never sent, so that no text
 * can move the cursor, set a title or hide a line. So is what reorders or hides text.
 */
import { codeOf, unseen } from "../effects/trace/Unseen.ts"

const names: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const unsafe = new RegExp(`[\n\t]|${unseen.source}`, "g")

const escape = (character: string): string => names[character] ?? codeOf(character)

/** On one line: line ends and tabs are shown as `\n`, `\r`, `\t`. */
export const inline = (text: string): string => (/[^ -~]/.test(text) ? text.replace(unsafe, escape) : text)

/** Line ends and tabs stay; a carriage return before a line end goes. */
export const block = (text: string): string =>
  /[^ -~\n\t]/.test(text) ? text.replaceAll("\r\n", "\n").replace(unseen, escape) : text

const unit = (code: number): string => `\\u${code.toString(16).padStart(4, "0")}`

/** A document as JSON: a reader gets the same texts, a terminal no character that acts. */
export const jsonText = (value: unknown, indent = 2): string => {
  const units = (character: string) => character.split("").map((one) => unit(one.charCodeAt(0)))
  return JSON.stringify(value, undefined, indent).replace(unseen, (character) => units(character).join(""))
}

/** One line of at most `width` characters, cut with an ellipsis. */
export const cut = (text: string, width: number): string => {
  // Only a bounded part is looked at (a character has at most two units): a result may have megabytes.
  const part = text.slice(0, 2 * width + 2)
  const characters = [...inline(part)]
  if (characters.length <= width && part.length === text.length) return characters.join("")
  return `${characters.slice(0, Math.max(0, width - 1)).join("")}…`
}

/** `1 call`, `2 calls`. */
export const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`

/** `850 ms`, `1.9 s`, `2 min 5 s`. */
export const duration = (millis: number): string => {
  if (millis < 999.5) return `${millis < 10 ? Math.round(millis * 10) / 10 : Math.round(millis)} ms`
  // Rounded before it is taken apart: 119.9 s are 2 min 0 s, not 1 min 60 s.
  if (millis < 59_950) return `${Math.round(millis / 100) / 10} s`
  const seconds = Math.round(millis / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** `712 bytes`, `2.3 MB`. */
export const size = (bytes: number): string => {
  const units = ["bytes", "kB", "MB", "GB", "TB"]
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1]
  return unit === 0 ? `${bytes} bytes` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}
