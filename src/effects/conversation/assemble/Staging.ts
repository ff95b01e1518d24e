/** Puts a directory of files in place at once: written aside, on disk, then renamed. Before that nothing of it is to be seen. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { makeDirectory, reasonOf } from "../../../actors/Directories.ts"
import { isAlive } from "../../../tools/Alive.ts"
import { ConversationError } from "../ConversationError.ts"
import { create, syncDirectory } from "../ConversationFile.ts"

export interface NewFile {
  readonly name: string
  readonly text: string
}

const stagingName = /^\..+\.(\d+)\.tmp$/

/** Removes what processes left behind that were killed while they assembled. */
const sweep = (directory: string): void => {
  for (const name of readdirSync(directory)) {
    const found = stagingName.exec(name)
    if (found !== null && !isAlive(Number(found[1]))) rmSync(join(directory, name), { recursive: true, force: true })
  }
}

const attempt = <A>(path: string, act: () => A): Effect.Effect<A, ConversationError> =>
  Effect.try({
    try: act,
    catch: (cause) => new ConversationError({ path, place: "", reason: `it cannot be written: ${reasonOf(cause)}` })
  })

/** Makes `parent`, which is generated and so kept out of version control. */
const prepare = (parent: string): void => {
  if (existsSync(parent)) sweep(parent)
  else {
    makeDirectory(parent)
    writeFileSync(join(parent, ".gitignore"), "*\n")
  }
}

const write = (staging: string, files: ReadonlyArray<NewFile>): void => {
  mkdirSync(staging)
  for (const { name, text } of files) create(join(staging, name), text)
  syncDirectory(staging)
}

/** Whether it went in place; false where the name is taken. */
const place = (staging: string, target: string): boolean => {
  if (existsSync(target)) return false
  try {
    renameSync(staging, target)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === "ENOTEMPTY" || code === "EEXIST") return false
    throw error
  }
  return true
}

/** Makes a new directory with these files under `parent`; `name` gives another one each time. The name it got. */
export const putInPlace = (
  parent: string,
  files: ReadonlyArray<NewFile>,
  name: Effect.Effect<string>
): Effect.Effect<string, ConversationError> =>
  Effect.gen(function* () {
    let id = yield* name
    const staging = join(parent, `.${id}.${process.pid}.tmp`)
    yield* attempt(parent, () => prepare(parent))
    return yield* Effect.gen(function* () {
      yield* attempt(parent, () => write(staging, files))
      while (!(yield* attempt(parent, () => place(staging, join(parent, id))))) id = yield* name
      yield* attempt(parent, () => syncDirectory(parent))
      return id
    }).pipe(Effect.ensuring(Effect.sync(() => rmSync(staging, { recursive: true, force: true }))))
  })
