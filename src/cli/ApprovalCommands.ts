/** `writ approve` and `writ deny`: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"
import { unrecorded } from "./SettingLists.ts"

const config = {
  run: Argument.String("run").pipe(Argument.withDescription("The run that waits: its id, its directory or its trace")),
  call: Argument.String("call").pipe(
    Argument.withDescription("The call that is meant (default: the one the run waits with)"),
    Argument.optional,
    Argument.map((call) => (call._tag === "Some" ? call.value : undefined))
  ),
  reason: Flags.text("reason", "TEXT", "Why; kept with the decision"),
  by: Flags.text("by", "NAME", "Who decides (default: the user who runs this)"),
  resume: Flag.Boolean("resume").pipe(
    Flag.withDescription("Go on with the run (default: yes)"),
    Flag.withDefault(true)
  ),
  // The run goes on at once.
  ...Flags.settings(...unrecorded),
  json: Flags.json,
  quiet: Flags.quiet,
  color: Flags.color
}

export const approve = Command.make(
  "approve",
  config,
  ({ by, call, color, json, quiet, reason, resume, run, ...raw }) =>
    Effect.flatMap(
      Effect.promise(() => import("./approve.ts")),
      ({ approve }) => approve({ run, call, reason, by, resume, json, quiet, color, settings: Flags.rawOf(raw) })
    )
).pipe(
  Command.withDescription(
    "Show the call a stopped run waits with, allow it, and go on with the run. The approval is for exactly that call with exactly its arguments, and expires (--approval-expiry)."
  ),
  Command.withShortDescription("Allow the call a run waits with, and go on"),
  Command.withExamples([
    { command: "writ approve 20261130-065239-d4257f", description: "Allow it and go on" },
    {
      command: "writ approve 20261130-065239-d4257f --no-resume --approval-expiry 2h",
      description: "Allow it for somebody else to go on with: writ run --resume"
    }
  ])
)

export const deny = Command.make("deny", config, ({ by, call, color, json, quiet, reason, resume, run, ...raw }) =>
  Effect.flatMap(
    Effect.promise(() => import("./approve.ts")),
    ({ deny }) => deny({ run, call, reason, by, resume, json, quiet, color, settings: Flags.rawOf(raw) })
  )
).pipe(
  Command.withDescription(
    "Show the call a stopped run waits with, refuse it, and go on with the run: the model is told that it was not allowed."
  ),
  Command.withShortDescription("Refuse the call a run waits with, and go on"),
  Command.withExamples([
    {
      command: 'writ deny 20261130-065239-d4257f --reason "wrong customer"',
      description: "Refuse it and go on"
    }
  ])
)
