/** The conversation of a run as `transcript.yaml`, written whole or not at all. Loaded only when one is written. */

import * as Effect from "effect/Effect"
import { stringify } from "yaml"
import type { Redactor } from "../actors/Redaction.ts"
import { writeWhole } from "../actors/WholeFile.ts"
import type { Outcome } from "../effects/Outcome.ts"
import type { Entry, Recorded } from "../effects/Transcript.ts"
import type { Json } from "../tools/JsonText.ts"
import { type RunAbout, snake } from "./Report.ts"

/** An answer that was given but that the model has not seen: the run stopped before. */
const unseen = ({ span }: Extract<Entry, { readonly kind: "tool" | "feedback" }>) =>
  span === undefined ? { state: "uncommitted" } : {}

/** What a compaction removed is no longer before the model, and still part of what was said. */
const entryDocument = (entry: Recorded) => ({
  ...messageDocument(entry),
  ...(entry.dropped === true ? { state: "dropped" } : {})
})

const messageDocument = (entry: Entry) => {
  switch (entry.kind) {
    case "system":
      return { role: "system", content: entry.content }
    case "user":
      return { role: "user", content: entry.content }
    case "assistant":
      return {
        role: "assistant",
        ...(entry.reasoning === undefined ? {} : { reasoning: entry.reasoning }),
        ...(entry.calls.length > 0 && entry.content === "" ? {} : { content: entry.content }),
        ...(entry.calls.length === 0 ? {} : { calls: entry.calls }),
        ...(entry.turn === "malformed" || entry.turn === "partial" ? { state: entry.turn } : {})
      }
    case "tool":
      return { role: "tool", call: entry.callId, name: entry.name, content: entry.content, ...unseen(entry) }
    case "marker":
      return { role: "marker", removed: entry.removed, content: entry.content }
    case "feedback":
      return { role: "feedback", code: entry.code, content: entry.content, ...unseen(entry) }
  }
}

/** The messages as they may be written, and how often something was replaced. */
const redacted = (messages: ReadonlyArray<object>, redactor: Redactor | undefined) => {
  const all = messages.map((message) =>
    redactor === undefined ? { value: message, count: 0 } : redactor.json(message as Json)
  )
  return { messages: all.map(({ value }) => value), count: all.reduce((sum, { count }) => sum + count, 0) }
}

/** Writes the transcript. Why it could not be written, or `undefined`. */
export const save = (
  path: string,
  outcome: Outcome,
  about: Omit<RunAbout, "transcriptPath">,
  redactor?: Redactor
): Effect.Effect<string | undefined> =>
  Effect.try({
    try: () => {
      const entries = outcome.transcript.filter((entry) => entry.kind !== "system" || !entry.implicit)
      const { codec, model, tools } = about
      const head = { run: outcome.runId, model, codec, tools: [...tools], status: snake(outcome.stop._tag) }
      const { count, messages } = redacted(entries.map(entryDocument), redactor)
      // Whoever reads it knows that it is not what was said, and that nothing can go on from it.
      const note = count === 0 ? {} : { redacted: count }
      writeWhole(path, [stringify({ ...head, ...note, messages }, { lineWidth: 0 })])
    },
    catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
  }).pipe(
    Effect.as(undefined),
    Effect.catch((reason) => Effect.succeed(reason))
  )
