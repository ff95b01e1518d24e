/**
 * Characters that act instead of being read, or that nobody sees: controls, what reorders or hides text, halves of pairs.
 * Whoever shows text of a trace shows them by their code. Knows nothing of where the text goes.
 */

/** C0 and C1 but line end and tab, lone surrogates, bidirectional and invisible marks, tag characters. One match, one character. */
export const unseen =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udc7f]/g

/** `\u202e`, `\u{e0041}`. */
export const codeOf = (character: string): string => {
  const point = character.codePointAt(0)!
  const digits = point.toString(16)
  return point > 0xffff ? `\\u{${digits}}` : `\\u${digits.padStart(4, "0")}`
}
