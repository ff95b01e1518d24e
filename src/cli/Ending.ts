/** How a command ends when it does not end well: the exit codes of the command line, and who says why. */
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import { isCliError } from "effect/cli/CliError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { block, jsonText } from "./Printable.ts"

/** A command that has said all there is to say and ends with this code. */
export class Ended extends Schema.TaggedError<Ended>()("Ended", { code: Schema.Natural }) {
  override get [Runtime.errorExitCode](): number {
    return this.code
  }
  override readonly [Runtime.errorReported] = false
}

/** The command line asks for something that does not exist or does not fit together. Exit code 2. */
export class UsageError extends Schema.TaggedError<UsageError>()("UsageError", { message: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 2
}

export const usage = (message: string): Effect.Effect<never, UsageError> => Effect.fail(new UsageError({ message }))

/** Ends with `code`; 0 goes on. */
export const endWith = (code: number): Effect.Effect<void, Ended> =>
  code === 0 ? Effect.void : Effect.fail(new Ended({ code }))

const usageTags: ReadonlySet<string> = new Set([
  "SettingsError",
  "RegistrationError",
  "InvalidOptions",
  "RunDirectoryError",
  "ResumeError"
])

/** 0 completed, 1 failed, 2 usage, 4 stopped from outside; others come with `Ended`. */
export const codeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasInterruptsOnly(exit.cause)) return 4
  const error = Cause.squash(exit.cause)
  if (isCliError(error)) return error._tag === "ShowHelp" && error.errors.length === 0 ? 0 : 2
  if (usageTags.has(String((error as { readonly _tag?: unknown })._tag))) return 2
  return Runtime.getErrorExitCode(error)
}

/** What went wrong, for people; `undefined` when it was said already. */
const wordsOf = (cause: Cause.Cause<unknown>): string | undefined => {
  if (Cause.hasInterruptsOnly(cause)) return undefined
  const error = Cause.squash(cause)
  if (isCliError(error) || error instanceof Ended) return undefined
  if (Cause.hasDies(cause)) return `this is a bug in writ, please report it\n${Cause.pretty(cause)}`
  return error instanceof Error ? error.message : String(error)
}

/** Says on standard error what went wrong, once. */
export const reported = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.tapCause(effect, (cause) => {
    const words = wordsOf(cause)
    return words === undefined ? Effect.void : Console.error(`writ: ${block(words)}`)
  })

/** What stands in place of a command's own document. */
export const errorDocument = (code: number, message: string): string =>
  jsonText({ error: { exit_code: code, message } }, 0)

/** With `--json`, a command that fails before it has a document says so in one. */
export const inJson =
  (json: boolean) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    json
      ? Effect.tapCause(effect, (cause) => {
          const message = Cause.hasInterruptsOnly(cause) ? "stopped from outside" : wordsOf(cause)
          if (message === undefined) return Effect.void
          return Console.log(errorDocument(codeOf(Exit.failCause(cause)), message))
        })
      : effect
