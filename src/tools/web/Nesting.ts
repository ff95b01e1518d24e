/**
 * How deep HTML is nested, found without building anything: a parser's work grows with the square of the depth, so this one
 * is stopped as soon as there is too much of it. It is the parser that `html-to-text` uses, so both see the same tree.
 */
import * as Effect from "effect/Effect"

/** Thrown through the parser, to stop it. */
const tooDeep = Symbol("too deep")

/** Is an element nested deeper than `most`? */
export const isDeeper = Effect.fnUntraced(function* (html: string, most: number): Effect.fn.Return<boolean> {
  const { Parser } = yield* Effect.promise(() => import("htmlparser2"))
  return yield* Effect.sync(() => {
    let depth = 0
    const parser = new Parser({
      onopentag: () => {
        depth += 1
        if (depth > most) throw tooDeep
      },
      onclosetag: () => {
        depth -= 1
      }
    })
    return stopped(() => parser.end(html))
  })
})

const stopped = (parse: () => void): boolean => {
  try {
    parse()
    return false
  } catch (cause) {
    if (cause === tooDeep) return true
    throw cause
  }
}
