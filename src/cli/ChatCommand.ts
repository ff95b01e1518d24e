/** `writ chat`: its flags and its help. The program is imported when it runs. */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { names } from "../effects/SettingFields.ts"
import * as Flags from "./Flags.ts"

/** Each message is a run in a directory of its own, so there is none to name; and none of them goes on later by itself. */
const settings = names.filter((name) => name !== "runDir" && name !== "keepState")

export const chat = Command.make(
  "chat",
  { ...Flags.settings(...settings), json: Flags.json, quiet: Flags.quiet, color: Flags.color },
  ({ color, json, quiet, ...raw }) =>
    Effect.flatMap(
      Effect.promise(() => import("./chat.ts")),
      ({ chat }) => chat({ json, quiet, color, settings: Flags.rawOf(raw) })
    )
).pipe(
  Command.withDescription(
    "Talk with a local model, which may call tools. Each message is a run with a record and limits of its own. Without a terminal, each line of standard input is a message and each answer goes to standard output."
  ),
  Command.withShortDescription("Talk with a local model"),
  Command.withExamples([
    { command: "writ chat", description: "With the model that was chosen, or the tiny one that ships" },
    { command: "writ chat --tools none --model hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M", description: "No tools" },
    { command: "writ chat --json < questions.txt", description: "One JSON document per line that is answered" }
  ])
)
