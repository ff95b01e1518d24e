/** `{{ variable }}` in paths (R-AILLY-11), and nowhere else: what the files say is never looked at. Throws `Refusal`s. */
import { nearest } from "../../../tools/Nearest.ts"
import { type Path, Refusal } from "../YamlDocuments.ts"

/** What an axis may be called, and so a variable. */
export const variableName = /^[A-Za-z_][A-Za-z0-9_-]*$/

const shownParts = (path: string): string => JSON.stringify(path)

/** The texts and the variables of a path, in turn: texts stand at even indices. */
const partsOf = (path: string, place: Path): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let at = 0
  for (;;) {
    const open = path.indexOf("{{", at)
    if (open < 0) return [...parts, path.slice(at)]
    const close = path.indexOf("}}", open + 2)
    if (close < 0) throw new Refusal(place, `${shownParts(path)}: {{ without }}`)
    const name = path.slice(open + 2, close).trim()
    if (!variableName.test(name)) {
      throw new Refusal(
        place,
        `${shownParts(path)}: {{ ${name} }} is no variable: expected the name of an axis of the matrix`
      )
    }
    parts.push(path.slice(at, open), name)
    at = close + 2
  }
}

/** Refuses a path that is not closed or asks for a variable that is no axis. Looks at no file. */
export const check = (path: string, axes: ReadonlyArray<string>, place: Path): void => {
  for (const [index, name] of partsOf(path, place).entries()) {
    if (index % 2 === 0 || axes.includes(name)) continue
    const near = nearest(name, axes)
    const known = axes.length === 0 ? "the matrix has no axis" : `there are ${axes.join(", ")}`
    const hint = near === undefined ? `${known}; add one, or give --var ${name}=VALUE` : `did you mean ${near}?`
    throw new Refusal(place, `${shownParts(path)}: unknown variable ${name}: ${hint}`)
  }
}

/** The path for one binding. */
export const fill = (path: string, binding: Readonly<Record<string, string>>, place: Path): string =>
  partsOf(path, place)
    .map((part, index) => (index % 2 === 0 ? part : binding[part]!))
    .join("")
