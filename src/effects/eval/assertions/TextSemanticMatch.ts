/** `text_semantic_match`: the final answer means the same, as far as an engine's vectors tell. Deferred without an engine. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { cosine } from "../Embedder.ts"
import { kind } from "../Kind.ts"
import { deferred, errored, fail, malformed, pass } from "../Verdict.ts"
import { answerShown, saidText } from "./FinalText.ts"

/** Cosine similarity that counts as the same meaning unless the suite says otherwise. */
const defaultThreshold = 0.8

export const textSemanticMatch = kind(
  "text_semantic_match",
  {
    value: Schema.NonEmptyString,
    threshold: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: -1, maximum: 1 })))
  },
  ({ threshold = defaultThreshold, value }, subject, { embedder }) => {
    if (value.trim() === "") return malformed("value has nothing but white space")
    if (embedder === undefined) return deferred("no engine for vectors is set up (writ eval --embedding-model)")
    const text = saidText(subject)
    if (typeof text !== "string") return text
    return Effect.match(embedder.embed([value, text]), {
      onFailure: (error) => errored(`${embedder.name}: ${error.message}`),
      onSuccess: ([wanted = [], found = []]) => {
        const similarity = cosine(wanted, found)
        if (similarity === undefined) return errored(`${embedder.name}: its vectors cannot be compared`)
        if (similarity >= threshold) return pass
        return fail(`similarity ${similarity.toFixed(3)} is below ${threshold}: ${answerShown(text)}`)
      }
    })
  }
)
