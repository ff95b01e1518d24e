/**
 * `judge`: an engine answers a question about the conversation and grades it. What was asked and answered is kept as a
 * conversation file of its own.
 */
import { hash } from "node:crypto"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Conversation } from "../../conversation/Conversation.ts"
import * as ConversationFile from "../../conversation/ConversationFile.ts"
import type { JudgeReply } from "../JudgeEngine.ts"
import { gradeOf, question, system } from "../JudgePrompt.ts"
import { makeKept } from "../Kept.ts"
import { kind, type Place } from "../Kind.ts"
import { deferred, errored, fail, malformed, pass, quote, type Verdict } from "../Verdict.ts"

const transcript = (model: string, asked: string, place: Place, reply: JudgeReply | undefined): Conversation => ({
  meta: { model, debug: { judge: `${place.case}, assertion ${place.ordinal}` } },
  session: [
    { role: "system", content: system },
    { role: "user", content: asked },
    reply === undefined
      ? { role: "assistant" }
      : {
          role: "assistant",
          content: reply.raw,
          trace: {
            span_id: "judge-0",
            model,
            tokens: reply.tokens,
            latency_ms: reply.millis,
            events: []
          }
        }
  ]
})

const longest = 80

/** Whatever a name holds that is no part of a file name is written as its code; a long one ends in its hash. */
const safe = (text: string): string => {
  const written = text.replace(/[^A-Za-z0-9_-]/gu, (character) => `~${character.codePointAt(0)!.toString(16)}~`)
  return written.length <= longest ? written : `${written.slice(0, longest - 9)}~${hash("sha256", text).slice(0, 8)}`
}

/** `over-limit.2-answers.0.yaml`: the conversation, the case by place and name, the assertion in it. */
const fileOf = (conversation: string, place: Place): string =>
  `${safe(conversation)}.${place.index}-${safe(place.case)}.${place.ordinal}.yaml`

const graded = (reply: JudgeReply): Verdict => {
  const said = reply.text.trim()
  const grade = gradeOf(said)
  if (grade === "P") return pass
  const reasons = said.replace(/\n?[ \t]*GRADE:[ \t]*[PFI]\s*$/, "").trim()
  if (grade === "F") return fail(reasons === "" ? "the judge says no, without a reason" : reasons)
  if (grade === "I") return malformed(`the judge could not decide: ${quote(reasons, 600)}`)
  return malformed(`the judge's reply does not end in GRADE: P, F or I: ${quote(said.slice(-400), 400)}`)
}

export const judge = kind("judge", { prompt: Schema.String }, ({ prompt }, subject, around, place) => {
  const { judge: engine, judges } = around
  if (prompt.trim() === "") return malformed("prompt is empty: there is nothing to decide")
  if (engine === undefined) return deferred("no engine for judges is set up (--judge-model or --judge-script)")
  const unfinished = subject.final() === undefined ? subject.unfinished() : undefined
  if (unfinished !== undefined) return fail(unfinished)
  return Effect.gen(function* () {
    const asked = question(prompt, subject)
    const reply = yield* Effect.result(engine.ask(system, asked))
    const file = join(judges, fileOf(subject.name, place))
    const kept = transcript(engine.model, asked, place, Result.isSuccess(reply) ? reply.success : undefined)
    const saved = yield* Effect.result(Effect.andThen(makeKept(judges), ConversationFile.save(file, kept)))
    if (Result.isFailure(reply)) return errored(`the judge's engine failed: ${reply.failure.message}`)
    if (Result.isFailure(saved)) return errored(`the judge's transcript cannot be kept: ${saved.failure.message}`)
    return graded(reply.success)
  })
})
