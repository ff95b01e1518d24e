/** `writ serve`: its flags and its help. The program is imported when it runs. */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { names } from "../effects/SettingFields.ts"
import * as Flags from "./Flags.ts"

/** Each request is a run in a directory of its own, which says by its tools whether it talks or works. */
const settings = names.filter((name) => name !== "runDir" && name !== "route" && name !== "keepState")

const own = {
  host: Flags.text("host", "ADDRESS", "Listen on this address (default 127.0.0.1; any other needs tokens)"),
  port: Flags.number("port", "PORT", "Listen on this port (default 8123; 0 takes one that is free)"),
  modelName: Flags.text("model-name", "NAME", "What clients call the model (default: the name of its file)"),
  tokenFile: Flags.text(
    "token-file",
    "FILE",
    "Who may ask: NAME:TOKEN, one a line, in a file only its owner may read (or WRIT_SERVE_TOKENS)"
  ),
  sessions: Flags.number("sessions", "N", "Requests answered at a time, each with a context of its own (default 4)"),
  queue: Flags.number("queue", "N", "Requests that may wait for a session (default 32)"),
  keyRequests: Flags.number("key-requests", "N", "Requests one token may have open at a time (default 16)"),
  keyRate: Flags.number("key-rate", "N", "Requests one token may make a minute (default: as many as it likes)"),
  drainSeconds: Flags.number(
    "drain-seconds",
    "N",
    "When asked to stop, how long requests may go on before they are cancelled (default 30)"
  )
}

export const serve = Command.make("serve", { ...own, ...Flags.settings(...settings), json: Flags.json }, (flags) => {
  const { drainSeconds, host, json, keyRate, keyRequests, modelName, port, queue, sessions, tokenFile, ...raw } = flags
  const said = { drainSeconds, host, json, keyRate, keyRequests, modelName, port, queue, sessions, tokenFile }
  return Effect.flatMap(
    Effect.promise(() => import("./serve.ts")),
    ({ serve }) => serve({ ...said, settings: Flags.rawOf(raw) })
  )
}).pipe(
  Command.withDescription(
    "Answer chat completions over HTTP as OpenAI's API does. Each request is a run: tools of the server pass every gate and are put on record; calls of tools that a client brings are checked and handed to it."
  ),
  Command.withShortDescription("Answer chat completions over HTTP"),
  Command.withExamples([
    { command: "writ serve", description: "The tiny demo model on http://127.0.0.1:8123/v1" },
    {
      command: "writ serve --model hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M --tools none --sessions 2",
      description: "A real model without tools of the server"
    },
    { command: "writ serve --host 0.0.0.0 --token-file tokens", description: "For others, who need a token" }
  ])
)
