import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Agent from "../../src/effects/Agent.ts"
import type { Session } from "../../src/effects/RunContext.ts"
import type { Entry } from "../../src/effects/Transcript.ts"
import type { Codec, RenderOptions, ToolAnswer } from "../../src/engine/codecs/Codec.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import { layerScripted, ScriptedSessions } from "../../src/testing.ts"
import { playRandom, samples } from "../kit/randomRuns.ts"
import { call } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const answerOf = (entry: Entry): ToolAnswer | undefined => {
  if (entry.kind === "tool") return { name: entry.name, text: entry.content }
  return entry.kind === "feedback" ? { name: "", text: entry.content } : undefined
}

const alone = (codec: Codec, options: RenderOptions, entry: Exclude<Entry, { readonly kind: "tool" | "feedback" }>) => {
  switch (entry.kind) {
    case "system":
      return flatten(codec.system(entry.implicit ? undefined : entry.content, options))
    case "user":
      return flatten(codec.user(entry.content))
    case "assistant":
      return flatten(codec.opening(options)) + entry.raw + flatten(codec.closing)
  }
}

/** What a transcript says is in the context, by the increments its codec renders. */
const rendered = ({ codec, registry, transcript }: Session): string => {
  const options = { tools: registry.specs }
  let out = ""
  let waiting: Array<ToolAnswer> = []
  const answered = () => {
    if (waiting.length > 0) out += flatten(codec.answers(waiting))
    waiting = []
  }
  let span: Entry["span"]
  for (const entry of transcript.entries) {
    if (entry.span === undefined) continue
    // Answers of one turn share a span: they are one message.
    if (span?.start !== entry.span.start) answered()
    span = entry.span
    const answer = answerOf(entry)
    if (answer !== undefined) waiting.push(answer)
    else out += alone(codec, options, entry as Exclude<Entry, { readonly kind: "tool" | "feedback" }>)
  }
  answered()
  return out
}

/** Spans follow one another from the first token on, without a gap. */
const gapless = (entries: ReadonlyArray<Entry>): number => {
  let end = 0
  for (const { span } of entries) {
    if (span === undefined) continue
    if (span.end === end) continue
    assert.strictEqual(span.start, end)
    end = span.end
  }
  return end
}

describe("the transcript of a session", () => {
  for (const codec of ["qwen2.5", "qwen3", "llama3", "generic-json"]) {
    it.effect(`renders to exactly what is in the context, whatever happened: ${codec}`, () =>
      Effect.gen(function* () {
        const kinds = new Set<string>()
        for (const spec of samples(codec === "qwen2.5" ? 250 : 80, 11)) {
          const { context, session } = yield* playRandom(spec, codec)
          assert.strictEqual(rendered(session), context, JSON.stringify(spec))
          assert.strictEqual(gapless(session.transcript.entries), yield* session.context.length)
          for (const entry of session.transcript.entries) {
            kinds.add(entry.kind === "assistant" ? entry.turn : entry.kind)
          }
        }
        // Each kind of entry came up, or the property says less than it seems to.
        const all = ["system", "user", "final", "malformed", "feedback"]
        const speaks = codec.startsWith("qwen") ? ["calls", "tool"] : []
        const expected = [...all, ...speaks, ...(codec === "qwen2.5" ? ["partial"] : [])]
        assert.deepStrictEqual(
          expected.filter((kind) => !kinds.has(kind)),
          []
        )
      })
    )
  }

  it.effect("holds on over several tasks of one session", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const session = yield* Agent.session({ tools: registry })
      for (const task of ["first", "second", "third"]) yield* Agent.runIn(session, task, { limits: { repairs: 0 } })
      assert.strictEqual(rendered(session), (yield* ScriptedSessions)[0]?.committed())
      assert.strictEqual(gapless(session.transcript.entries), yield* session.context.length)
    }).pipe(
      Effect.scoped,
      // The second task stops with a mistake that is still to be answered when the third begins.
      Effect.provide(layerScripted({ turns: [call("add", { a: 1, b: 1 }), "2", "<tool_call>\n{", "ok"] }))
    )
  )
})
