/** The commands about model families: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"

const codecFlags = {
  family: Flags.text("family", "ID", "The codec"),
  model: Flags.text("model", "FILE", "A GGUF file, whose chat template decides on the codec")
}

const renderCodec = Command.make(
  "render",
  {
    ...codecFlags,
    messages: Flags.text("messages", "FILE", "The conversation as JSON (default: standard input, as with -)"),
    tools: Flags.text("tools", "FILE", "The tools as JSON (default: none)"),
    thinking: Flags.choice(
      "thinking",
      ["on", "off"],
      "Reasoning, where the family can switch it (default: its own way)"
    ),
    mode: Flags.choice(
      "mode",
      ["template", "verbatim"],
      "As the official template, or as a live session (default: template)"
    ),
    today: Flags.text("today", "DATE", "The date, where the family tells it, in its own form"),
    generationPrompt: Flags.switchable(
      "generation-prompt",
      "End with the opening of the next turn (default: unless an answer is last)"
    ),
    json: Flags.json
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./codecRender.ts")),
      ({ render }) => render({ ...flags, mode: flags.mode ?? "template" })
    )
).pipe(Command.withDescription("Print a conversation as the bytes a model is given"))

const parseCodec = Command.make(
  "parse",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("A turn of a model (default: standard input, as with -)"),
      Argument.optional,
      Argument.map((file) => (file._tag === "Some" ? file.value : undefined))
    ),
    ...codecFlags,
    tools: Flags.text("tools", "FILE", "The advertised tools as JSON (default: some tool, so that calls are seen)"),
    chunk: Flags.number("chunk", "N", "Let the text arrive in pieces of N characters"),
    stop: Flags.choice("stop", ["eos", "length"], "How the turn ended (default: eos)"),
    reasoningOpen: Flags.switchOn("reasoning-open", "The prompt had begun a block of reasoning"),
    json: Flags.json
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./codecParse.ts")),
      ({ parseTurn }) => parseTurn({ ...flags, stop: flags.stop ?? "eos" })
    )
).pipe(
  Command.withDescription(
    "Print what a turn comes to: an answer, calls, or what is wrong with it. Ends with 3 if it is malformed."
  )
)

const checkCodec = Command.make("check", { ...codecFlags, json: Flags.json, color: Flags.color }, (flags) =>
  Effect.flatMap(
    Effect.promise(() => import("./codecCheck.ts")),
    ({ check }) => check(flags)
  )
).pipe(
  Command.withDescription(
    "Compare the codec with the chat template inside a model file (default: the demo model), to the byte. Ends with 3 if they differ."
  ),
  Command.withShortDescription("Compare a codec with the template inside a model file")
)

const listCodecs = Command.make("list", { json: Flags.json, color: Flags.color }, (flags) =>
  Effect.flatMap(
    Effect.promise(() => import("./codecList.ts")),
    ({ list }) => list(flags)
  )
).pipe(Command.withDescription("List the codecs"))

/** `writ codec …` */
export const codec = Command.make("codec").pipe(
  Command.withDescription("Write and read a model family's syntax"),
  Command.withSubcommands([renderCodec, parseCodec, checkCodec, listCodecs])
)
