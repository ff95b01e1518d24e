/**
 * How many columns of a terminal a text takes, and which way it reads. Both by code point: where terminals disagree (joined
 * emoji), the answer is never too few columns, so what is measured fits its line. Knows nothing of colours: measure before
 * painting.
 */

/** Scripts and pictures that take two columns: East Asian wide and fullwidth characters, and emoji shown as such. */
const wide =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}])/u

/** Signs that stand before a number in Arabic and Syriac; they are format characters and take room all the same. */
const numberSign = /^[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2]/

/** Marks on the character before, joiners, vowels and finals of Hangul syllables written in parts. */
const none = /^[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff\ud7b0-\ud7fb]/u

/** Asks for the picture instead of the sign before it. */
const pictureSelector = "\ufe0f"

/** Columns of one character: 0, 1 or 2. */
const columnsOfCharacter = (character: string): number => {
  if (character <= "~") return 1
  if (character === pictureSelector || wide.test(character)) return character === pictureSelector ? 1 : 2
  return none.test(character) && !numberSign.test(character) ? 0 : 1
}

/** Columns of a text without line ends and tabs. */
export const columnsOf = (text: string): number => {
  if (/^[ -~]*$/.test(text)) return text.length
  let columns = 0
  for (const character of text) columns += columnsOfCharacter(character)
  return columns
}

/** A character of a script that is written without spaces: a line may end before and after it. */
export const isIdeographic = (character: string): boolean =>
  character > "\u1100" && wide.test(character) && !/^\p{Emoji_Presentation}/u.test(character)

/** Does it take no room of its own? */
export const isMark = (character: string): boolean => character > "~" && columnsOfCharacter(character) === 0

/** The beginning of a text that has no acting characters, in at most `columns` columns; cut with an ellipsis. */
export const fitted = (text: string, columns: number): string => {
  if (text.length <= columns && /^[ -~]*$/.test(text)) return text
  let [out, used, last] = ["", 0, ""]
  for (const character of text) {
    const more = columnsOfCharacter(character)
    if (used + more > columns) return used < columns ? `${out}…` : `${out.slice(0, out.length - last.length)}…`
    // Marks go with the character they are on.
    last = more === 0 ? last + character : character
    out += character
    used += more
  }
  return out
}

/** Letters of the scripts that are written from right to left. */
const rightToLeft = /^(?=\p{L})[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u

export type Direction = "ltr" | "rtl"

/** The direction of the first letter; `undefined` where there is none. */
export const directionOf = (text: string): Direction | undefined => {
  for (const character of text) {
    if (rightToLeft.test(character)) return "rtl"
    if (/^\p{L}/u.test(character)) return "ltr"
  }
  return undefined
}

/** Is any letter of it written from right to left? */
export const hasRightToLeft = (text: string): boolean =>
  /[^\u0000-\u058f]/.test(text) && [...text].some((character) => rightToLeft.test(character))
