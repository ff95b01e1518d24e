/**
 * Lists of calls that belong to tasks (tau-bench, tau2-bench) as a workload: each call is written as a model of a family writes
 * it, read back by that family's codec, and checked against its tool's schema. Nothing is executed.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Codec } from "../../../engine/codecs/Codec.ts"
import { flatten } from "../../../engine/Prompt.ts"
import type { Json, JsonObject } from "../../../tools/JsonText.ts"
import * as Registry from "../../../tools/Registry.ts"
import type { ToolSpec } from "../../../tools/ToolCall.ts"
import { equal } from "../Operator.ts"

const Call = Schema.Struct({ name: Schema.NonEmptyString, arguments: Schema.Record(Schema.String, Schema.Json) })

const Task = Schema.Struct({
  id: Schema.NonEmptyString,
  expected_calls: Schema.Array(Call),
  /** Those the calls use; none where the source publishes no schemas. */
  tools: Schema.Array(
    Schema.Struct({
      function: Schema.Struct({
        name: Schema.NonEmptyString,
        description: Schema.optionalKey(Schema.String),
        parameters: Schema.Record(Schema.String, Schema.Json)
      })
    })
  )
})

export type Task = typeof Task.Type

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Task))

/** The tasks of a text, one JSON object a line. */
export const read = (text: string): Result.Result<ReadonlyArray<Task>, string> => {
  const tasks: Array<Task> = []
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue
    const task = decode(line)
    if (Result.isFailure(task)) return Result.fail(`line ${at + 1} is no task with calls: ${task.failure.message}`)
    tasks.push(task.success)
  }
  return Result.succeed(tasks)
}

export interface Checked {
  readonly tasks: number
  readonly calls: number
  /** Came back from the codec as they went in. */
  readonly read: number
  /** Their tool has a schema, and they are valid by it. */
  readonly valid: number
  /** Their tool has no schema here. */
  readonly withoutSchema: number
  /** `tau-bench/retail-test/0 #2: …` */
  readonly problems: ReadonlyArray<string>
}

const registryOf = ({ tools }: Task) =>
  Registry.fromDynamic(
    tools.map(({ function: { description = "", name, parameters } }) => ({
      name,
      description,
      schema: parameters as JsonObject,
      contract: { risk: "read" },
      run: () => Effect.succeed("")
    }))
  )

/** The call of a turn with this one call, or why there is none. */
const readBack = (codec: Codec, { arguments: args, name }: typeof Call.Type, tools: ReadonlyArray<ToolSpec>) => {
  const call = { name, arguments: args as JsonObject, id: "call00000" }
  const text = flatten(codec.written({ role: "assistant", content: "", calls: [call] }, { tools, after: "user" }))
  const parser = codec.parser({ tools })
  parser.push(text)
  const { action } = parser.end("eog")
  if (action._tag !== "ToolCalls") return action._tag === "Malformed" ? action.code : "no call"
  const [found, ...more] = action.calls
  return more.length === 0 && found!.name === name && equal(found!.arguments, args as Json) ? undefined : "another call"
}

const typeOf = (value: Json): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value === "object" ? "object" : typeof value

/** A tool that has no schema is declared as its call has it: families that write values as text read them by type. */
const declaredBy = ({ arguments: args, name }: typeof Call.Type): ToolSpec => ({
  name,
  description: "",
  parameters: {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(args).map(([parameter, value]) => [parameter, { type: typeOf(value as Json) }])
    )
  }
})

const checkTask = Effect.fnUntraced(function* (task: Task, codec: Codec) {
  const registry = yield* registryOf(task)
  const found = { read: 0, valid: 0, withoutSchema: 0, problems: [] as Array<string> }
  for (const [at, call] of task.expected_calls.entries()) {
    const broken = readBack(codec, call, registry.specs.length > 0 ? registry.specs : [declaredBy(call)])
    if (broken === undefined) found.read++
    else found.problems.push(`${task.id} #${at}: ${call.name} is read as ${broken}`)
    const tool = registry.get(call.name)
    const checked = tool?.check(call.arguments as JsonObject)
    if (checked === undefined) found.withoutSchema++
    else if (Result.isSuccess(checked)) found.valid++
    else {
      const reasons = checked.failure.map(({ path, reason }) => `${path}: ${reason}`).join("; ")
      found.problems.push(`${task.id} #${at}: ${call.name}: ${reasons}`)
    }
  }
  return found
})

/** Every call of every task. Fails where a tool's schema cannot be used. */
export const check = Effect.fnUntraced(function* (
  tasks: ReadonlyArray<Task>,
  codec: Codec
): Effect.fn.Return<Checked, Registry.RegistrationError> {
  const each = yield* Effect.forEach(tasks, (task) => checkTask(task, codec))
  const sum = (key: "read" | "valid" | "withoutSchema") => each.reduce((all, one) => all + one[key], 0)
  return {
    tasks: tasks.length,
    calls: tasks.reduce((all, { expected_calls }) => all + expected_calls.length, 0),
    read: sum("read"),
    valid: sum("valid"),
    withoutSchema: sum("withoutSchema"),
    problems: each.flatMap(({ problems }) => problems)
  }
})
