/** What the run has published so far. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import * as Artifacts from "../Artifacts.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"

const declared = Tool.make("list_artifacts", {
  description: "List the files that were written in this run.",
  success: Schema.Struct({
    artifacts: Schema.Array(Schema.Struct({ name: Schema.String, id: Schema.String, bytes: Schema.Int })),
    more: Schema.optionalKey(Schema.Literal(true))
  }),
  failure: ToolError,
  dependencies: [ToolContext]
})

export const listArtifacts = about(
  declare(declared, { risk: "read", touches: () => [{ verb: "read", resource: "artifact:**" }] }),
  {
    text: `Sorted by name, at most ${Artifacts.maxListed}; \`more\` says that there are more. Artifacts of earlier parts of a run that is continued are among them. Two artifacts may have one name: their ids differ.`,
    example: {}
  }
)

export const handleListArtifacts = Effect.fnUntraced(function* () {
  const { settings } = yield* ToolContext
  const { artifacts, complete } = yield* Artifacts.list(settings.artifacts)
  return complete ? { artifacts } : { artifacts, more: true as const }
})
