/** `program`: an executable of the project judges the final answer, started as it is, without a shell. */
import { closeSync, openSync, readSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reasonOf } from "../../../actors/Directories.ts"
import { kind } from "../Kind.ts"
import { confined, decide, PassEnv, Source, type Started, temporary } from "../Scripted.ts"
import { errored, malformed, type Verdict } from "../Verdict.ts"

/** First bytes of ELF, of Mach-O in its five forms, of Windows' programs, and of scripts that name their interpreter. */
const magics = ["7f454c46", "feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe", "4d5a", "2321"]

/** A file that says nothing of how it runs would be given to a shell by the system. */
const saysHow = (path: string): boolean => {
  const file = openSync(path, "r")
  try {
    const bytes = Buffer.alloc(4)
    readSync(file, bytes, 0, 4, 0)
    return magics.some((magic) => bytes.toString("hex").startsWith(magic))
  } finally {
    closeSync(file)
  }
}

const startOf = (path: string | Verdict): Started | Verdict => {
  if (typeof path !== "string") return path
  try {
    return saysHow(path)
      ? { command: path, args: [] }
      : malformed("it is no program: a script begins with #! and its interpreter")
  } catch (cause) {
    return errored(`it cannot be read: ${reasonOf(cause)}`)
  }
}

export const program = kind(
  "program",
  { script: Source, pass_env: Schema.optionalKey(PassEnv) },
  ({ pass_env, script }, subject, around) => {
    const path =
      "path" in script ? Effect.sync(() => confined(around.root, script.path)) : temporary("program", script.contents)
    const start = Effect.map(path, startOf)
    return decide({ class: "program", passEnv: pass_env, start }, subject, around)
  }
)
