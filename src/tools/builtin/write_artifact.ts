/** Hands a text over as an artifact. It is published by the runtime once the call has succeeded; nothing is written here. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"
import { addedText, handedOver, publishing } from "./publishing.ts"

const declared = Tool.make("write_artifact", {
  description: "Write a text file.",
  parameters: Schema.Struct({
    name: Schema.String.annotate({ description: "File name" }),
    content: Schema.String.annotate({ description: "Full text of the file" })
  }),
  success: Schema.Struct({ name: Schema.String, bytes: Schema.Int }),
  failure: ToolError,
  dependencies: [ToolContext]
})

export const writeArtifact = about(
  declare(declared, {
    ...publishing,
    post: ({ content, name }, said) => handedOver({ name, bytes: Buffer.byteLength(content) }, said),
    preview: ({ content, name }) => Effect.succeed(addedText(name, content))
  }),
  {
    text: `Published when the call has succeeded, under a name made of its digest (\`artifacts/<16 hex digits>-NAME\`), whole or not at all; the same text under the same name is the same file. Names have 1 to 128 letters, digits, dots, underscores or hyphens and do not begin with a dot. A call hands over at most 64 MiB, a run keeps at most 1000 artifacts and 1 GiB.`,
    example: { name: "report.md", content: "# Report\n" }
  }
)

const mediaTypes: ReadonlyMap<string, string> = new Map([
  ["md", "text/markdown"],
  ["txt", "text/plain"],
  ["html", "text/html"],
  ["htm", "text/html"],
  ["css", "text/css"],
  ["csv", "text/csv"],
  ["json", "application/json"],
  ["jsonl", "application/jsonl"],
  ["yaml", "application/yaml"],
  ["yml", "application/yaml"],
  ["xml", "application/xml"],
  ["svg", "image/svg+xml"]
])

const wrong = (path: string, message: string) => new ToolError({ kind: "invalid_arguments", message, path })

/** The media type follows from the name's extension; plain text where there is none that is known. */
export const handleWriteArtifact = Effect.fnUntraced(function* (artifact: {
  readonly name: string
  readonly content: string
}) {
  const { content, name } = artifact
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/.test(name)) {
    return yield* wrong(
      "name",
      "a name has 1 to 128 letters, digits, dots, underscores or hyphens and does not start with a dot"
    )
  }
  if (content === "") return yield* wrong("content", "the content is empty: there is nothing to write")
  const bytes = new TextEncoder().encode(content)
  const extension = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? ""
  const { produce } = yield* ToolContext
  produce({ name, mediaType: mediaTypes.get(extension) ?? "text/plain", bytes })
  return { name, bytes: bytes.byteLength }
})
