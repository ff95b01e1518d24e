/**
 * Unique words put wherever content can enter a run, and a search for them in every spelling a careless writer might use:
 * as they are, escaped, in hex, in base64 of any alignment, and as unkeyed digests, from which short content can be guessed.
 */
import { hash } from "node:crypto"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Contract from "../../src/tools/Contract.ts"
import { canonical } from "../../src/tools/JsonText.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { acts } from "./contracts.ts"

/** Every place content enters by. */
export const places = [
  "task",
  "system",
  "argument",
  "argumentname",
  "result",
  "resultkey",
  "error",
  "errorpath",
  "crash",
  "unknowntool",
  "artifactname",
  "artifactbytes",
  "mediatype",
  "reasoning",
  "prose",
  "malformed",
  "question",
  "approval",
  "final",
  "partial",
  "long",
  "engine",
  "rolledback",
  "workspace",
  "fixture"
] as const
export type Place = (typeof places)[number]

/** Long enough to be nobody else's, with a letter that escapes differently everywhere. */
export const canary = (place: Place): string => `Kq7${place}Zw9é`

/** What can be grepped of it whatever happens to the last letter. */
const stem = (place: Place): string => canary(place).slice(0, -1)

const base64Forms = (word: string): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((shift) => {
    const encoded = Buffer.from(`${"x".repeat(shift)}${word}`).toString("base64")
    // The first and last groups also depend on what stands around the word.
    const inner = encoded.slice(shift === 0 ? 0 : 4, encoded.length - 4)
    return [inner, inner.replaceAll("+", "-").replaceAll("/", "_")]
  })

const unicodeEscaped = (word: string): string =>
  [...word].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")

/** Spellings of a word that give it away. */
export const spellings = (place: Place): ReadonlyArray<string> => {
  const word = stem(place)
  return [
    word,
    word.toLowerCase(),
    word.toUpperCase(),
    [...word].reverse().join(""),
    unicodeEscaped(word),
    Buffer.from(word).toString("hex"),
    Buffer.from(word).toString("hex").toUpperCase(),
    Buffer.from(word, "utf16le").toString("hex"),
    ...base64Forms(word)
  ]
}

/** Unkeyed digests of a value, in the forms the runtime digests things in. */
export const digests = (value: unknown): ReadonlyArray<string> => {
  const texts = [JSON.stringify(value), canonical(value as never), ...(typeof value === "string" ? [value] : [])]
  return texts.flatMap((text) => ["sha256", "sha1", "md5", "sha512"].map((algorithm) => hash(algorithm, text)))
}

const Give = Tool.make("give", {
  description: "Gives something back.",
  parameters: Schema.Struct({ value: Schema.String }),
  success: Schema.Unknown
}).annotate(Contract.Risk, "read")

const Fail = Tool.make("fail_with", {
  description: "Fails.",
  parameters: Schema.Struct({ how: Schema.Literals(["error", "crash"]) }),
  success: Schema.String,
  failure: ToolError
}).annotate(Contract.Risk, "read")

const Keep = acts(
  "local-write",
  Tool.make("keep", {
    description: "Keeps something.",
    parameters: Schema.Struct({}),
    success: Schema.String
  })
)

const Long = Tool.make("long", {
  description: "Gives a lot.",
  parameters: Schema.Struct({}),
  success: Schema.String
}).annotate(Contract.Risk, "read")

const Where = Tool.make("where", {
  description: "Says where it is and what it knows.",
  parameters: Schema.Struct({}),
  success: Schema.String
}).annotate(Contract.Risk, "read")

const Send = acts(
  "external",
  Tool.make("send", {
    description: "Sends.",
    parameters: Schema.Struct({ to: Schema.String }),
    success: Schema.String
  })
)

const Ask = Tool.make("ask", {
  description: "Asks the user.",
  parameters: Schema.Struct({ question: Schema.String }),
  success: Schema.String
})
  .annotate(Contract.Risk, "read")
  .annotate(Contract.AsksUser, true)

/** Tools whose every way out carries a canary. */
export const registry = Registry.fromToolkit(Toolkit.make(Give, Fail, Keep, Long, Where, Send, Ask), {
  give: () => Effect.succeed({ [canary("resultkey")]: [canary("result")] }),
  fail_with: ({ how }) =>
    how === "error"
      ? Effect.fail(new ToolError({ kind: "execution_failed", message: canary("error"), path: canary("errorpath") }))
      : Effect.die(new Error(canary("crash"))),
  keep: Effect.fnUntraced(function* () {
    const { produce } = yield* ToolContext
    // Artifact names are ASCII.
    const name = `${stem("artifactname")}.txt`
    produce({ name, mediaType: `text/${canary("mediatype")}`, bytes: Buffer.from(canary("artifactbytes")) })
    return "kept"
  }),
  long: () => Effect.succeed(`${canary("long")} `.repeat(4_000)),
  where: Effect.fnUntraced(function* () {
    const { fixtures, workspace } = (yield* ToolContext).settings
    return `${workspace} ${Object.entries(fixtures).join()}`
  }),
  send: () => Effect.succeed("sent"),
  ask: () => Effect.succeed("never")
})
