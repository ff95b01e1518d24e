/**
 * A toolkit with one tool that reaches outside: letters go into `outbox.txt` of the workspace, one line each time it acts, with
 * nothing of its own that would notice a second one. Loaded by tool threads, and by `--toolkit`.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { calculate, handleCalculate } from "../../src/tools/builtin/calculate.ts"
import { handleWriteArtifact, writeArtifact } from "../../src/tools/builtin/write_artifact.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { broken, holds } from "../../src/tools/Terms.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"

const PostLetter = Tool.make("post_letter", {
  description: "Sends a letter.",
  parameters: Schema.Struct({
    to: Schema.String.annotate({ description: "Who gets it" }),
    text: Schema.String.annotate({ description: "What it says" })
  }),
  success: Schema.String,
  dependencies: [ToolContext]
})

const outbox = Effect.map(ToolContext, ({ settings }) => join(settings.workspace ?? ".", "outbox.txt"))

const lettersIn = (path: string): ReadonlyArray<string> =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : []

/** What was really sent. */
export const sent = (workspace: string): ReadonlyArray<string> => lettersIn(join(workspace, "outbox.txt"))

const lineOf = ({ text, to }: { readonly to: string; readonly text: string }) => JSON.stringify({ to, text })

const postLetter = Contract.declare(PostLetter, {
  risk: "external",
  ledger: "none",
  retry: "never",
  reversible: false,
  evidence: { source: "sensor", describes: "the line of the letter in the outbox" },
  scopes: ["mail"],
  touches: ({ to }) => [{ verb: "send", resource: `letter:${to}` }],
  cost: () => 2,
  hazard: ({ to }) => (to === "everybody" ? 50 : 0.5),
  post: (letter) =>
    Effect.map(outbox, (path) =>
      lettersIn(path).includes(lineOf(letter)) ? holds() : broken("the letter is not in the outbox")
    ),
  preview: ({ text, to }) => Effect.succeed(`a letter to ${to}\n${text.replace(/^/gm, "+ ")}`)
})

/** Says nothing of itself. */
const Careless = Tool.make("careless", {
  description: "",
  parameters: Schema.Struct({ what: Schema.String }),
  success: Schema.String
})

export const toolkit = Toolkit.make(postLetter, calculate, writeArtifact, Careless)

export const registry = Registry.fromToolkit(toolkit, {
  post_letter: (letter) =>
    Effect.map(outbox, (path) => {
      appendFileSync(path, `${lineOf(letter)}\n`)
      return "sent"
    }),
  calculate: handleCalculate,
  write_artifact: handleWriteArtifact,
  careless: () => Effect.succeed("done")
})
