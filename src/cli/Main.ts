/** Runs the command line as a process: built-in flags, usage errors, signals, exit codes. */

import * as Console from "effect/Console"
import * as CliConfig from "effect/cli/CliConfig"
import type * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Runtime from "effect/Runtime"
import { flagOf, names } from "../effects/SettingFields.ts"
import { version } from "../effects/Version.ts"
import { writ } from "./Commands.ts"
import { codeOf, errorDocument, reported } from "./Ending.ts"
import { settled } from "./StandardOutput.ts"
import { listen, StopSlot } from "./StopRequests.ts"

const settingFlags: ReadonlySet<string> = new Set(names.map((name) => `--${flagOf(name)}`))

/** A flag that another command has is no slip of the keyboard. */
const elsewhere = (error: CliError.NonShowHelpErrors): string =>
  error._tag === "UnrecognizedOption" && settingFlags.has(error.option) ? "\n\n  It is an option of writ run." : ""

/** Usage errors without the whole help, which would push them off the screen; where JSON was asked for, in a document too. */
const presenterFor = (json: boolean): CliOutput.Presenter => ({
  present: Effect.fnUntraced(function* (event) {
    if (event._tag !== "InvalidInvocation") return yield* CliOutput.defaultPresenter.present(event)
    const { canColor } = yield* TerminalCapabilities
    const formatter = CliOutput.defaultFormatter({ colors: canColor })
    const said = event.errors.map((error) => `${formatter.formatCliError(error)}${elsewhere(error)}`)
    for (const one of said) yield* Console.error(`writ: ${one}`)
    yield* Console.error(`\n${event.commandPath.join(" ")} --help shows what there is.`)
    if (json) yield* Console.log(errorDocument(2, said.join("\n")))
  })
})

/** Is JSON asked for? The parser has not said, where it is what failed. */
const asksForJson = (args: ReadonlyArray<string>): boolean => {
  const end = args.indexOf("--")
  const said = (end < 0 ? args : args.slice(0, end)).filter((arg) => /^--(?:no-)?json(?:=|$)/.test(arg)).at(-1)
  return said === "--json" || (said !== undefined && /^--json=(?:true|1|y|yes|on)$/.test(said))
}

const layerFor = (args: ReadonlyArray<string>) =>
  Layer.mergeAll(
    CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
    CliOutput.layerPresenter(presenterFor(asksForJson(args))),
    Layer.succeed(Logger.LogToStderr, true)
  )

/** The command line with these arguments; what goes wrong is said on standard error. */
export const command = (args: ReadonlyArray<string>) =>
  Command.runWith(writ, { version })(args).pipe(reported, Effect.provide(layerFor(args)))

const runMain = (slot: StopSlot) =>
  Runtime.makeRunMain(({ fiber, teardown }) => {
    const unlisten = listen(slot, () => fiber.interruptUnsafe())
    fiber.addObserver((exit) => {
      settled(process.stdout, () => {
        unlisten()
        if (slot.lost !== undefined) {
          process.stderr.write(`writ: standard output could not be written: ${slot.lost.message}\n`)
          process.exit(1)
        }
        teardown(exit, (code) => process.exit(code))
      })
    })
  })

/** Runs the program and ends the process with its exit code. */
export const main = <E>(program: Effect.Effect<void, E>): void => {
  const slot: StopSlot = { handler: undefined }
  runMain(slot)(Effect.provideService(program, StopSlot, slot), {
    disableErrorReporting: true,
    teardown: (exit, onExit) => onExit(codeOf(exit))
  })
}
