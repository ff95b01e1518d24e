/** `script`: a Node or Python script judges the final answer, which it reads from standard input. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { kind } from "../Kind.ts"
import { confined, decide, PassEnv, Source, temporary } from "../Scripted.ts"

const runtimes = {
  node: { command: process.execPath, file: "script.js" },
  python: { command: process.platform === "win32" ? "python" : "python3", file: "script.py" }
} as const

export const script = kind(
  "script",
  { runtime: Schema.Literals(["node", "python"]), script: Source, pass_env: Schema.optionalKey(PassEnv) },
  ({ pass_env, runtime, script }, subject, around) => {
    const { command, file } = runtimes[runtime]
    const path =
      "path" in script ? Effect.sync(() => confined(around.root, script.path)) : temporary(file, script.contents)
    const start = Effect.map(path, (path) => (typeof path === "string" ? { command, args: [path] } : path))
    return decide({ class: "script", passEnv: pass_env, start }, subject, around)
  }
)
