/** `response_field`: the final answer is JSON, and a JSONPath (RFC 9535) finds something in it, or nothing. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as JsonText from "../../../tools/JsonText.ts"
import { kind } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"
import { answerShown, finalText } from "./FinalText.ts"
import { find, Path } from "./Paths.ts"

export const responseField = kind(
  "response_field",
  { path: Path, exists: Schema.Boolean },
  ({ exists, path }, subject) => {
    const text = finalText(subject)
    if (typeof text !== "string") return text
    const read = JsonText.parse(text, { maxDepth: 100 })
    // A bad path is the suite's fault whatever the candidate said.
    const found = find(Result.isSuccess(read) ? read.success : null, path)
    if (found._tag === "Verdict") return found.verdict
    if (Result.isFailure(read))
      return fail(`the final answer is not JSON (${read.failure.reason}): ${answerShown(text)}`)
    if (found.values.length > 0 === exists) return pass
    return fail(exists ? `nothing is at ${path}: ${answerShown(text)}` : `there is something at ${path}`)
  }
)
