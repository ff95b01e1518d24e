/**
 * Reads the script of a conversation: `engine` and `tools`, or the `turns` of a script that plays the model alone. `--script`
 * names one file for all conversations, or a directory with `<conversation>.script.yaml` for each.
 */
import { existsSync } from "node:fs"
import { basename, join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Stdio from "effect/Stdio"
import { type Fixture, type Reply, replyProblem, type ToolReply } from "../effects/conversation/Fixture.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { type UsageError, usage } from "./Ending.ts"
import { readText } from "./Inputs.ts"
import { documentOf, Fault, Millis, problemsOf, ScriptTurns, timing } from "./ScriptFile.ts"

const map = Schema.Record(Schema.String, Schema.Json)

const Block = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("thinking"),
    thinking: Schema.String,
    signature: Schema.optionalKey(Schema.String)
  }),
  Schema.Struct({
    type: Schema.Literal("tool_use"),
    id: Schema.optionalKey(Schema.NonEmptyString),
    name: Schema.NonEmptyString,
    input: map
  })
])

const Trace = Schema.Struct({
  span_id: Schema.String,
  model: Schema.String,
  tokens: Schema.Struct({
    input: Schema.Natural,
    output: Schema.Natural,
    cache_hit: Schema.optionalKey(Schema.Natural),
    cache_write: Schema.optionalKey(Schema.Natural)
  }),
  latency_ms: Millis,
  events: Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, attributes: map }))
})

/** `fault: lost` is `fault: { kind: lost, before: 0 }`. */
const ReplyForm = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  blocks: Schema.optionalKey(Schema.Array(Block)),
  raw: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  trace: Schema.optionalKey(Trace),
  ...timing,
  fault: Schema.optionalKey(Schema.Union([Fault.fields.kind, Fault]))
})

const ToolReplyForm = Schema.Struct({
  content: Schema.optionalKey(Schema.String),
  is_error: Schema.optionalKey(Schema.Boolean),
  delay_ms: Schema.optionalKey(Millis),
  throw: Schema.optionalKey(Schema.String),
  hang: Schema.optionalKey(Schema.Boolean),
  expect_input: Schema.optionalKey(map)
})

const Form = Schema.Struct({
  engine: Schema.Union([Schema.Literal("auto"), Schema.Array(Schema.Union([Schema.String, ReplyForm]))]),
  tools: Schema.optionalKey(Schema.Record(Schema.String, Schema.Array(Schema.Union([Schema.String, ToolReplyForm])))),
  contextTokens: Schema.optionalKey(Schema.Natural),
  name: Schema.optionalKey(Schema.String)
})

const decode = Schema.decodeUnknownResult(Form, { errors: "all", onExcessProperty: "error" })

const decodeTurns = Schema.decodeUnknownResult(ScriptTurns, { errors: "all", onExcessProperty: "error" })

const replyOf = (said: string | typeof ReplyForm.Type): Reply => {
  if (typeof said === "string") return { text: said }
  const { fault, ...rest } = said
  if (fault === undefined) return rest as Reply
  return { ...(rest as Reply), fault: typeof fault === "string" ? { kind: fault, before: 0 } : fault }
}

const toolReplyOf = (said: string | typeof ToolReplyForm.Type): ToolReply =>
  typeof said === "string" ? { content: said } : said

const toolProblem = ({ content, hang, is_error, throw: broken }: ToolReply): string | undefined => {
  const ways = [hang === true, broken !== undefined, content !== undefined].filter((way) => way).length
  if (ways > 1) return "it is one of content, throw and hang"
  if (ways === 0) return "it does nothing: give content, throw or hang"
  return is_error === true && content === undefined ? "is_error goes with content" : undefined
}

const firstProblem = ({ engine, tools = {} }: Fixture): string | undefined => {
  const places = [
    ...(engine === "auto" ? [] : engine.map((reply, at) => [`engine[${at}]`, replyProblem(reply)] as const)),
    ...Object.entries(tools).flatMap(([name, replies]) =>
      replies.map((reply, at) => [`tools.${name}[${at}]`, toolProblem(reply)] as const)
    )
  ]
  const found = places.find(([, problem]) => problem !== undefined)
  return found === undefined ? undefined : `${found[0]}: ${found[1]}`
}

const fixtureFrom = (value: unknown, name: string): Result.Result<Fixture, string> => {
  const isTurns = typeof value === "object" && value !== null && "turns" in value
  if (isTurns) {
    const read = decodeTurns(value)
    if (Result.isFailure(read)) return Result.fail(problemsOf(read.failure))
    const { turns, ...rest } = read.success
    const engine = turns.map((turn): Reply => {
      if (typeof turn === "string") return { raw: turn }
      const { text, ...timed } = turn
      return { raw: text, ...timed }
    })
    return Result.succeed({ name, ...rest, engine })
  }
  const read = decode(value)
  if (Result.isFailure(read)) return Result.fail(problemsOf(read.failure))
  const { engine, tools, ...rest } = read.success
  const fixture: Fixture = {
    name,
    ...rest,
    engine: engine === "auto" ? engine : engine.map(replyOf),
    ...(tools === undefined
      ? {}
      : { tools: Object.fromEntries(Object.entries(tools).map(([tool, replies]) => [tool, replies.map(toolReplyOf)])) })
  }
  const problem = firstProblem(fixture)
  return problem === undefined ? Result.succeed(fixture) : Result.fail(problem)
}

/** The script in a file. */
export const read = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Fixture, UsageError, Stdio.Stdio> {
  const fixture = fixtureFrom(yield* documentOf(path, yield* readText("--script", path)), basename(path))
  return Result.isSuccess(fixture)
    ? fixture.success
    : yield* usage(`--script ${path}: it is no script of a conversation:\n${fixture.failure}`)
})

/** The script's file for a conversation. */
export const fileFor = (script: string, conversation: string): Effect.Effect<string, UsageError> => {
  if (!RunDirectory.isDirectory(script)) return Effect.succeed(script)
  const stem = basename(conversation).replace(/\.ya?ml$/i, "")
  const path = join(script, `${stem}.script.yaml`)
  return existsSync(path) ? Effect.succeed(path) : usage(`--script ${script}: it has no ${stem}.script.yaml`)
}
