/** Runs the command line as a process: built-in flags, usage errors, signals, exit codes. */

import * as Console from "effect/Console"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Runtime from "effect/Runtime"
import { version } from "../effects/Version.ts"
import { writ } from "./Commands.ts"
import { codeOf, reported } from "./Ending.ts"
import { settled } from "./StandardOutput.ts"
import { listen, StopSlot } from "./StopRequests.ts"

/** Usage errors without the whole help, which would push them off the screen. */
const presenter: CliOutput.Presenter = {
  present: Effect.fnUntraced(function* (event) {
    if (event._tag !== "InvalidInvocation") return yield* CliOutput.defaultPresenter.present(event)
    const { canColor } = yield* TerminalCapabilities
    const formatter = CliOutput.defaultFormatter({ colors: canColor })
    for (const error of event.errors) yield* Console.error(`writ: ${formatter.formatCliError(error)}`)
    return yield* Console.error(`\n${event.commandPath.join(" ")} --help shows what there is.`)
  })
}

const layer = Layer.mergeAll(
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
  CliOutput.layerPresenter(presenter),
  Layer.succeed(Logger.LogToStderr, true)
)

/** The command line with these arguments; what goes wrong is said on standard error. */
export const command = (args: ReadonlyArray<string>) =>
  Command.runWith(writ, { version })(args).pipe(reported, Effect.provide(layer))

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
