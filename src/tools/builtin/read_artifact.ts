/** The text of something the run has published, by parts if it is long. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import * as Artifacts from "../Artifacts.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"

/** Bytes of one part, unless asked otherwise, and at most. */
const standardLength = 16_384
const maxLength = 65_536

const declared = Tool.make("read_artifact", {
  description: "Read a file that was written in this run.",
  parameters: Schema.Struct({
    name: Schema.String.annotate({ description: "Name or id, as list_artifacts gives it" }),
    offset: Schema.optionalKey(
      Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description: "First byte; 0 when left out" })
    ),
    length: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxLength })).annotate({
        description: `Most bytes to read; ${standardLength} when left out`
      })
    )
  }),
  success: Schema.Struct({
    name: Schema.String,
    bytes: Schema.Int,
    text: Schema.String,
    next: Schema.optionalKey(Schema.Int)
  }),
  failure: ToolError,
  dependencies: [ToolContext]
})

export const readArtifact = about(
  declare(declared, { risk: "read", touches: ({ name }) => [{ verb: "read", resource: `artifact:${name}` }] }),
  {
    text: `\`bytes\` is the size of the whole; \`next\` is the \`offset\` to go on with and is absent at the end. A part never ends inside a character. A name that several artifacts have is refused with their ids; what is not UTF-8 text is refused with the byte from which on it is none. The whole of a result that was too long for the model is an artifact, too.`,
    example: { name: "report.md", length: 12 }
  }
)

export const handleReadArtifact = Effect.fnUntraced(function* (asked: {
  readonly name: string
  readonly offset?: number
  readonly length?: number
}) {
  const { settings } = yield* ToolContext
  const { length = standardLength, name, offset = 0 } = asked
  const { artifact, next, text } = yield* Artifacts.read(settings.artifacts, name, offset, length)
  return { name: artifact.name, bytes: artifact.bytes, text, ...(next === undefined ? {} : { next }) }
})
