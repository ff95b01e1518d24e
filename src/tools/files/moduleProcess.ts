/**
 * The entry of a process that runs a tool's module: reads the arguments, calls the module's default export with them, writes what
 * it gives. Only that is standard output; whatever the module prints goes to standard error.
 */
import { pathToFileURL } from "node:url"
import { keyVariable } from "./KeyVariable.ts"

const [, , file = "", output = "json"] = process.argv
const host = process.env

const answer = process.stdout.write.bind(process.stdout)
process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write

const input = async (): Promise<unknown> => {
  let text = ""
  for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk
  return JSON.parse(text)
}

const textOf = (result: unknown): string => {
  if (output === "json") return JSON.stringify(result ?? null)
  if (typeof result !== "string") throw new TypeError(`the module gave ${typeof result} where its file says text`)
  return result
}

const work = async (): Promise<string> => {
  const module_: { readonly default?: unknown } = await import(pathToFileURL(file).href)
  if (typeof module_.default !== "function") throw new TypeError("the module has no function as its default export")
  return textOf(await module_.default(await input(), { idempotencyKey: host[keyVariable] }))
}

work().then(
  // What the module left running does not keep the process.
  (text) => answer(text, () => process.exit(0)),
  (error: unknown) => {
    const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    process.stderr.write(`${said}\n`, () => process.exit(1))
  }
)
