/** `writ tools validate`: arguments against a JSON Schema, with every problem by its place. Ends with 3 where there is one. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as JsonSchema from "../tools/JsonSchema.ts"
import { isObject, parse } from "../tools/JsonText.ts"
import type { ValidatedArguments } from "../tools/Registry.ts"
import { endWith, inJson, usage } from "./Ending.ts"
import { readJson, readText } from "./Inputs.ts"
import { inline, jsonText } from "./Printable.ts"
import { paintFor } from "./Screen.ts"

export interface ValidateFlags {
  readonly schema: string
  readonly args: string | undefined
  readonly json: boolean
  readonly color: boolean | undefined
}

/** A problem as it is printed. */
interface ShownProblem {
  readonly pointer: string
  readonly path: string
  readonly code: string
  readonly reason: string
}

const whole = { pointer: "", path: "" }

/** Arguments as a call would bring them: strict JSON, an object, then the schema. */
const check = (
  checker: JsonSchema.JsonSchemaChecker,
  text: string
): Result.Result<ValidatedArguments, ReadonlyArray<ShownProblem>> => {
  const read = parse(text.trim())
  if (Result.isFailure(read)) {
    const { code, position, reason } = read.failure
    return Result.fail([{ ...whole, code, reason: `${reason} (at character ${position})` }])
  }
  if (!isObject(read.success)) {
    return Result.fail([{ ...whole, code: "arguments_not_object", reason: "the arguments must be a JSON object" }])
  }
  return checker.check(read.success)
}

export const validate = (flags: ValidateFlags) =>
  Effect.gen(function* () {
    const schema = yield* readJson("--schema", flags.schema)
    if (!isObject(schema)) return yield* usage(`--schema ${flags.schema}: expected a JSON Schema that is an object`)
    const checker = yield* Effect.catch(JsonSchema.compile(schema), ({ message }) =>
      usage(`--schema ${flags.schema}: it is refused: ${message}`)
    )
    const checked = check(checker, yield* readText("--args", flags.args))
    const errors = Result.isFailure(checked)
      ? checked.failure.map(({ code, path, pointer, reason }) => ({ pointer, path, code, reason }))
      : []
    if (flags.json) {
      const effective = Result.isSuccess(checked) ? { effective: checked.success.effective } : {}
      yield* Console.log(jsonText({ valid: errors.length === 0, errors, ...effective }))
    } else {
      const paint = yield* paintFor(flags.color)
      const lines = errors.map(
        ({ code, path, reason }) =>
          `${inline(path === "" ? "(arguments)" : path)}: ${inline(reason)} ${paint.dim(code)}`
      )
      yield* Console.log(errors.length === 0 ? paint.green("valid") : lines.join("\n"))
    }
    return yield* endWith(errors.length === 0 ? 0 : 3)
  }).pipe(inJson(flags.json))
