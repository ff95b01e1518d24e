/** `writ assemble NAME`: makes conversations out of a project's files and prints the directory they are in. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { type Assembled, assemble as run } from "../effects/conversation/assemble/Assemble.ts"
import type { Variable } from "../effects/conversation/assemble/Matrix.ts"
import { shown } from "../effects/RunDirectory.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { jsonText } from "./Printable.ts"

export interface AssembleFlags {
  readonly name: string
  readonly project: string | undefined
  readonly case: ReadonlyArray<string>
  readonly var: ReadonlyArray<string>
  readonly json: boolean
}

/** `tone=formal,casual` */
const variableOf = Effect.fnUntraced(function* (text: string): Effect.fn.Return<Variable, UsageError> {
  const [axis = "", rest] = text.split(/=(.*)/s)
  const values = rest?.split(",").map((value) => value.trim()) ?? []
  if (axis === "" || values.length === 0 || values.includes("")) {
    return yield* usage(`--var: expected AXIS=VALUE[,VALUE], found ${text}`)
  }
  return { axis, values }
})

const documentOf = ({ directory, files, runId }: Assembled) => ({
  run_id: runId,
  directory: shown(directory),
  conversations: files.map(({ composed, file, name }) => ({
    name,
    file: shown(file),
    model: composed.conversation.meta.model,
    binding: composed.conversation.meta.binding ?? {},
    tools: composed.tools.map(({ tool }) => tool.name),
    messages: composed.conversation.session.length
  }))
})

export const assemble = (flags: AssembleFlags) =>
  Effect.gen(function* () {
    const variables = yield* Effect.forEach(flags.var, (text) => variableOf(text))
    const made = yield* run({ project: flags.project ?? ".", name: flags.name, cases: flags.case, variables }).pipe(
      Effect.catchTag("ConversationError", ({ message }) => usage(message))
    )
    yield* Console.log(flags.json ? jsonText(documentOf(made)) : shown(made.directory))
  }).pipe(inJson(flags.json))
