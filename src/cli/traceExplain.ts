/** `writ trace explain TRACE CALL`: one call from what the model wrote to what the model was told, with the reasons on record. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { type Explanation, explain, findCall } from "../effects/trace/TraceExplain.ts"
import { fateOf, type TraceRun } from "../effects/trace/TraceRun.ts"
import { show } from "../effects/trace/TraceTimeline.ts"
import { aboutLines, claimsAbout, claimsIn, explainAnswer } from "./ClaimView.ts"
import { inJson, usage } from "./Ending.ts"
import { inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"
import { load } from "./TraceFile.ts"

export interface ExplainFlags {
  readonly trace: string
  readonly call: string
  readonly json: boolean
  readonly color: boolean | undefined
}

const human = ({ call, conclusion, fate, steps, tool }: Explanation, paint: Screen.Paint): string => {
  const good = fate === "succeeded" || fate === "known from before"
  return [
    `${paint.bold(inline(tool) || "(no name)")} ${paint.dim(inline(call))}: ${(good ? paint.green : paint.red)(fate)}`,
    "",
    ...steps.map(
      ({ seconds, seq, stage, text }) =>
        `${paint.dim(seconds.toFixed(3).padStart(9))}  ${stage.padEnd(10)} ${inline(text)} ${paint.dim(`(event ${seq})`)}`
    ),
    "",
    conclusion
  ].join("\n")
}

const named = (run: TraceRun): string =>
  run.calls.length === 0
    ? "it holds no calls"
    : `its calls are ${run.calls
        .slice(0, 50)
        .map((call) => `${call.id} (${show(call.tool)}, ${fateOf(call, run)})`)
        .join(", ")}${run.calls.length > 50 ? ", …" : ""}`

export const explainCall = (flags: ExplainFlags) =>
  Effect.gen(function* () {
    const trace = yield* load(flags.trace)
    const { path, run } = trace
    const call = findCall(run, flags.call)
    if (call === undefined && flags.call === "answer")
      return yield* explainAnswer(trace, flags.json, yield* Screen.paintFor(flags.color))
    if (call === undefined) return yield* usage(`${path} holds no call ${flags.call}: ${named(run)}`)
    const explained = explain(run, call)
    const claims = claimsAbout(call.id, claimsIn(trace))
    if (!flags.json) {
      const paint = yield* Screen.paintFor(flags.color)
      return yield* Console.log([human(explained, paint), ...aboutLines(claims, paint)].join("\n"))
    }
    const { conclusion, fate, ordinal, steps, tool, turn } = explained
    const document = {
      file: path,
      run_id: run.runId,
      call: call.id,
      tool,
      turn: turn ?? null,
      ordinal: ordinal ?? null
    }
    return yield* Console.log(jsonText({ ...document, fate, steps, conclusion, claims }))
  }).pipe(inJson(flags.json))
