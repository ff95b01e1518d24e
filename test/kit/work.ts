/**
 * Counts what a computation does to text: characters looked at or copied by the string and pattern methods it calls.
 * A measure of work that does not depend on how fast the machine is.
 */

type Method = (this: unknown, ...args: ReadonlyArray<unknown>) => unknown

const strings = [
  "charCodeAt",
  "codePointAt",
  "slice",
  "indexOf",
  "lastIndexOf",
  "startsWith",
  "endsWith",
  "includes",
  "trim",
  "replace"
]

/** What one call may have looked at. */
const cost = (name: string, subject: string, args: ReadonlyArray<unknown>, result: unknown): number => {
  const from = typeof args[1] === "number" ? args[1] : 0
  switch (name) {
    case "charCodeAt":
    case "codePointAt":
      return 1
    case "slice":
      return 1 + (result as string).length
    case "startsWith":
    case "endsWith":
      return 1 + String(args[0]).length
    case "indexOf":
      return 1 + ((result as number) < 0 ? subject.length - from : (result as number) - from)
    default:
      return 1 + subject.length
  }
}

export const countingWork = (run: () => unknown): number => {
  let work = 0
  const restore: Array<() => void> = []
  const wrap = (
    owner: object,
    name: string,
    count: (self: unknown, args: ReadonlyArray<unknown>, result: unknown) => number
  ) => {
    const original = Reflect.get(owner, name) as Method
    Object.defineProperty(owner, name, {
      configurable: true,
      writable: true,
      value: function (this: unknown, ...args: ReadonlyArray<unknown>) {
        const result = Reflect.apply(original, this, args)
        work += count(this, args, result)
        return result
      }
    })
    restore.push(() => Object.defineProperty(owner, name, { configurable: true, writable: true, value: original }))
  }
  for (const name of strings)
    wrap(String.prototype, name, (self, args, result) => cost(name, String(self), args, result))
  const exec = RegExp.prototype.exec
  RegExp.prototype.exec = function (text) {
    const from = this.global || this.sticky ? this.lastIndex : 0
    const found = Reflect.apply(exec, this, [text]) as RegExpExecArray | null
    work += 1 + (found === null ? String(text).length : found.index + found[0].length) - from
    return found
  }
  restore.push(() => Object.assign(RegExp.prototype, { exec }))
  wrap(Array.prototype, "join", (_self, _args, result) => 1 + (result as string).length)
  wrap(JSON, "parse", (_self, args) => 1 + String(args[0]).length)
  try {
    run()
  } finally {
    for (const undo of restore) undo()
  }
  return work
}
