/** Names places in conversation files for people: `meta.tools[1].name`, `message 3 (line 41), content[0].type`. */

const word = /^[A-Za-z_][A-Za-z0-9_-]*$/

/** Keys and indices as one would write them in a program. */
export const pathText = (path: ReadonlyArray<string | number>): string =>
  path
    .map((step, at) => {
      if (typeof step === "number") return `[${step}]`
      if (word.test(step)) return at === 0 ? step : `.${step}`
      return `[${JSON.stringify(step.length > 40 ? `${step.slice(0, 40)}…` : step)}]`
    })
    .join("")

/** A place in the meta (`index` -1) or in a message (counts from 0). */
export const placeOf = (index: number, path: ReadonlyArray<string | number>, line?: number): string => {
  const where = `${index < 0 ? "meta" : `message ${index}`}${line === undefined ? "" : ` (line ${line})`}`
  const inside = pathText(path)
  return inside === "" ? where : `${where}, ${inside}`
}
