/** The commands about model files: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"

const shared = { ...Flags.settings("modelsDir"), json: Flags.json, color: Flags.color }

const optionalText = (name: string, description: string) =>
  Argument.String(name).pipe(
    Argument.withDescription(description),
    Argument.optional,
    Argument.map((found) => (found._tag === "Some" ? found.value : undefined))
  )

const pull = Command.make(
  "pull",
  {
    uri: Argument.String("uri").pipe(
      Argument.withDescription("hf:USER/REPO:QUANT, hf:USER/REPO/FILE.gguf, https://… or http://…")
    ),
    name: Flags.text("name", "NAME", "What it is to be called here (default: the name of the file)"),
    sha256: Flags.text(
      "sha256",
      "HEX",
      "The SHA-256 it has to have; without it the one that the server states, if it does"
    ),
    ...shared
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./modelsPull.ts")),
      ({ pullModel }) => pullModel(flags)
    )
).pipe(
  Command.withDescription(
    "Download a model, check length, structure and hash, and put it on record. A download that broke off goes on; what does not fit is not kept."
  ),
  Command.withShortDescription("Download a model"),
  Command.withExamples([
    {
      command: "writ models pull hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M",
      description: "From Hugging Face, by quantization"
    },
    {
      command: "writ models pull https://example.org/model.gguf --name mine",
      description: "From anywhere, by a name of yours"
    }
  ])
)

const list = Command.make("list", shared, (flags) =>
  Effect.flatMap(
    Effect.promise(() => import("./modelsList.ts")),
    ({ listModels }) => listModels(flags)
  )
).pipe(Command.withDescription("List the models that are here, and the names they were given"))

const inspect = Command.make(
  "inspect",
  {
    file: optionalText("file", "A GGUF file, or the name of a model (default: the demo model)"),
    ...shared
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./modelsInspect.ts")),
      ({ inspectModel }) => inspectModel(flags)
    )
).pipe(Command.withDescription("Show a model file's metadata and template, and which codec fits it and why"))

const verify = Command.make(
  "verify",
  {
    names: Argument.String("name").pipe(
      Argument.withDescription("A model, by name or file (default: all of the directory)"),
      Argument.variadic()
    ),
    record: Flags.switchOn("record", "Put models without a record on record, with the hash they have now"),
    ...shared
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./modelsVerify.ts")),
      ({ verifyModels }) => verifyModels(flags)
    )
).pipe(
  Command.withDescription(
    "Read models whole, and compare structure, length and hash with what is on record. A difference ends with 3."
  ),
  Command.withShortDescription("Check models against their record")
)

const remove = Command.make(
  "remove",
  {
    names: Argument.String("name").pipe(
      Argument.withDescription("A model of the directory, by its name in the list"),
      Argument.variadic({ min: 1 })
    ),
    yes: Flags.switchOn("yes", "Do not ask").pipe(Flag.withAlias("y")),
    ...shared
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./modelsRemove.ts")),
      ({ removeModels }) => removeModels(flags)
    )
).pipe(Command.withDescription("Remove models, or what is left of a download, from the directory"))

const alias = Command.make(
  "alias",
  {
    name: optionalText("name", "The name that is given; default is the model that runs have when none is named"),
    target: optionalText("target", "What it stands for: a name of the list, a file, hf:… or https://…"),
    remove: Flags.switchOn("remove", "Take the name away"),
    ...shared
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./modelsAlias.ts")),
      ({ aliasModel }) => aliasModel(flags)
    )
).pipe(
  Command.withDescription(
    "Give a model a name for --model, or list the names. The name default says which model runs have when none is named."
  ),
  Command.withShortDescription("Give a model a name of yours"),
  Command.withExamples([
    {
      command: "writ models alias qwen hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M",
      description: "Then: writ run --model qwen …"
    },
    { command: "writ models alias default qwen", description: "The model of every run that names none" }
  ])
)

/** `writ models`. */
export const models = Command.make("models").pipe(
  Command.withDescription("Download, list, look at, check and remove model files"),
  Command.withSubcommands([pull, list, inspect, verify, remove, alias])
)
