/** What a client is told of a turn that was begun, taken back and generated once more. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ScriptedTurn } from "../../../src/engine/ScriptedModel.ts"
import { hello, post, serving } from "../../kit/serve.ts"

/** The text that was sent, and how the stream ended. */
const heard = (text: string) => {
  const events = text
    .split("\n\n")
    .flatMap((event) => (event.startsWith("data: {") ? [JSON.parse(event.slice("data: ".length))] : []))
  return {
    text: events.map(({ choices }) => choices?.[0]?.delta.content ?? "").join(""),
    end: events.at(-1).error?.code ?? events.at(-1).choices?.[0]?.finish_reason
  }
}

const brokenOff: ScriptedTurn = { text: ["It ", "is ", "so."], fault: { kind: "restarted", before: 2 } }

const streamed = Effect.fnUntraced(function* (again: ScriptedTurn, stop: ReadonlyArray<string> = []) {
  const { url } = yield* serving([brokenOff, again], { withTools: false })
  return heard((yield* post(url, { ...hello, stream: true, stop })).text)
})

describe("a turn that is generated once more", () => {
  it.live("goes on behind what was sent of it before", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* streamed({ text: ["It is", " so."] }), { text: "It is so.", end: "stop" })
    })
  )

  it.live("holds nothing of what was held back of it before", () =>
    Effect.gen(function* () {
      const begun: ScriptedTurn = { text: ["E", "ND"], fault: { kind: "restarted", before: 1 } }
      const { url } = yield* serving([begun, "It is so."], { withTools: false })
      const { text } = yield* post(url, { ...hello, stream: true, stop: "END" })
      assert.deepStrictEqual(heard(text), { text: "It is so.", end: "stop" })
    })
  )

  it.live.each([
    ["another one", { text: ["It ", "was so."] }, []],
    ["a shorter one", { text: ["It"] }, []],
    ["one that ends where it may", { text: ["It END is"] }, ["END"]],
    ["another one in what was held back", { text: ["It E"] }, ["END"]]
  ] as const)("and comes to %s is an error: nothing that was sent is taken back", ([, again, stop]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* streamed(again, stop), { text: "It is ", end: "answer_retracted" })
    })
  )
})

describe("an answer that begins with a line end", () => {
  it.live("is told to its end, also where that could have been a stop", () =>
    Effect.gen(function* () {
      const { url } = yield* serving(["\n\nIt is E"], { withTools: false })
      const { text } = yield* post(url, { ...hello, stream: true, stop: "END" })
      assert.deepStrictEqual(heard(text), { text: "\n\nIt is E", end: "stop" })
    })
  )
})
