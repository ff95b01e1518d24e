/** The commands about the effect ledger: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"

const key = Argument.String("key").pipe(
  Argument.withDescription("The effect's key, or as much of its beginning as is needed to tell it from others")
)

const shared = { ...Flags.settings("ledger"), json: Flags.json, color: Flags.color }

const list = Command.make(
  "list",
  {
    run: Flags.text("run", "RUN-ID", "Only the effects of this run"),
    unknown: Flags.switchOn("unknown", "Only effects of which nobody knows whether they happened"),
    ...shared
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./ledgerList.ts")),
      ({ listEffects }) => listEffects(flags)
    )
).pipe(Command.withDescription("List effects, oldest first, and how things stand with each"))

const show = Command.make("show", { key, ...shared }, (flags) =>
  Effect.flatMap(
    Effect.promise(() => import("./ledgerShow.ts")),
    ({ showEffect }) => showEffect(flags)
  )
).pipe(Command.withDescription("Show everything that is known of one effect"))

const resolve = Command.make(
  "resolve",
  {
    key,
    happened: Flags.switchOn("happened", "It happened; whoever asks again is told so, and it is not done again"),
    didNotHappen: Flags.switchOn(
      "did-not-happen",
      "It did not happen and left nothing; a run that goes on may try anew"
    ),
    failed: Flags.switchOn("failed", "It failed and left nothing; the model is told so and may propose it again"),
    result: Flags.text(
      "result",
      "JSON",
      "With --happened: the result that the model is told, instead of that it happened"
    ),
    reason: Flags.text("reason", "TEXT", "How you know; kept with the effect"),
    by: Flags.text("by", "NAME", "Who says so (default: the user who runs this)"),
    ...shared
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./ledgerResolve.ts")),
      ({ resolveEffect }) => resolveEffect(flags)
    )
).pipe(
  Command.withDescription(
    "Settle an effect of which nobody knows whether it happened, after looking where it would be seen. Refuses one that is settled, or that somebody is still at work on."
  ),
  Command.withShortDescription("Settle an unknown effect by hand"),
  Command.withExamples([
    {
      command: 'writ ledger resolve 3f9a1c --happened --reason "invoice INV-9 is in the portal"',
      description: "It was found"
    },
    {
      command: 'writ ledger resolve 3f9a1c --did-not-happen --reason "the outbox of 9 o\'clock is empty"',
      description: "It was looked for and is not there"
    }
  ])
)

/** `writ ledger`. */
export const ledger = Command.make("ledger").pipe(
  Command.withDescription("Look into the effect ledger, and settle what nobody knows"),
  Command.withSubcommands([list, show, resolve])
)
