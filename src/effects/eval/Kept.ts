/** Directories of what evaluations leave behind: made when something is written, and kept out of version control. */
import { existsSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeDirectory, reasonOf } from "../../actors/Directories.ts"

/** What cannot be made or written, and why. */
export class KeptError extends Schema.TaggedError<KeptError>()("KeptError", { message: Schema.String }) {}

/** Makes `directory`; the one above the runs (`evals/judges`, `evals/reports`) says that its content is generated. */
export const makeKept = (directory: string, top = dirname(directory)): Effect.Effect<void, KeptError> =>
  Effect.try({
    try: () => {
      makeDirectory(directory)
      const ignore = join(top, ".gitignore")
      if (!existsSync(ignore)) writeFileSync(ignore, "*\n")
    },
    catch: (cause) => new KeptError({ message: `${directory} cannot be made: ${reasonOf(cause)}` })
  })
