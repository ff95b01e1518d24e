/**
 * The same attacks on every family. A family differs from the others only in its wire; where an outcome differs too, the
 * row says why. No text that a model should not have written may come out as an answer or as a call.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { Action, MalformedCode } from "../../../src/engine/codecs/Codec.ts"
import { byId, ids } from "../../../src/engine/codecs/Families.ts"
import type { EndReason } from "../../../src/engine/Generation.ts"
import { parsePieces, splits, tool, units } from "../../kit/codecs.ts"
import { type Wire, wireOf } from "../../kit/wires.ts"

const options = { tools: [tool("calc", { type: "object", properties: { a: { type: "string" } } }), tool("read")] }

type Wanted = MalformedCode | "FinalText" | "ToolCalls"

const outcomeOf = (action: Action): Wanted => (action._tag === "Malformed" ? action.code : action._tag)

/** The families whose call is a plain JSON object: what is a call without its envelope elsewhere is a call there. */
const isJson = ({ name }: Wire): boolean => name === "llama3" || name === "json lines"

const bare = `{"name": "calc", "arguments": {"a": "b"}}`
const reversed = `{"arguments": {"a": "b"}, "name": "calc"}`
const nested = `{"tool_calls": [${bare}]}`
const openAi = `{"type": "function", "function": ${bare}}`

interface Row {
  readonly claim: string
  readonly text: (wire: Wire) => string
  readonly wanted: Wanted | ((wire: Wire) => Wanted)
}

const aCallIn =
  (families: ReadonlyArray<Wire["name"]>, otherwise: Wanted = "wrong_envelope") =>
  ({ name }: Wire): Wanted =>
    families.includes(name) ? "ToolCalls" : otherwise

/** Where the call is a plain object, one in a code block has no envelope that could be in the wrong place. */
const inBlock = (wire: Wire): Wanted => (isJson(wire) ? "wrong_envelope" : "call_in_code_block")

/** An answer of Llama's tools is a turn of its own speaker. */
const forgedAnswer = ({ name }: Wire): Wanted => (name === "llama3" ? "forged_turn" : "forged_tool_response")

const rows: ReadonlyArray<Row> = [
  { claim: "the envelope", text: ({ call }) => call, wanted: "ToolCalls" },
  { claim: "a call object", text: () => bare, wanted: aCallIn(["llama3", "json lines"]) },
  { claim: "a call object with its arguments first", text: () => reversed, wanted: aCallIn(["llama3", "json lines"]) },
  { claim: "a call object inside another object", text: () => nested, wanted: "wrong_envelope" },
  { claim: "a call object in the form of a public interface", text: () => openAi, wanted: "wrong_envelope" },
  { claim: "a call object in prose", text: ({ say }) => say(`Sure: ${bare} as you like.`), wanted: "wrong_envelope" },
  // JSON lines may follow prose; Llama's call is the whole turn.
  { claim: "a call object on a line after prose", text: () => `Sure.\n${bare}`, wanted: aCallIn(["json lines"]) },
  {
    claim: "a broken call object in prose",
    text: ({ say }) => say(`So: ${bare.slice(0, -3)},}}`),
    wanted: "wrong_envelope"
  },
  {
    claim: "a broken call object with a type",
    text: ({ say }) => say(`So: {"type": "function", "name": "calc", "parameters": {"a": }} yes`),
    wanted: "wrong_envelope"
  },
  {
    claim: "a call object behind a thousand braces",
    text: ({ say }) => say(`x ${"{".repeat(1100)} ${bare}`),
    wanted: "wrong_envelope"
  },
  {
    claim: "a call object in a code block",
    text: ({ say }) => say(`\`\`\`json\n${bare}\n\`\`\``),
    wanted: "wrong_envelope"
  },
  { claim: "a call object in inline code", text: ({ say }) => say(`So \`${bare}\`.`), wanted: "wrong_envelope" },
  { claim: "a call object in an array", text: () => `[${bare}]`, wanted: aCallIn(["json lines"]) },
  {
    claim: "a call object in an array in prose",
    text: ({ say }) => say(`So [1, ${bare}] it is`),
    wanted: "wrong_envelope"
  },
  { claim: "the envelope in a code block", text: ({ call }) => `\`\`\`\n${call}\n\`\`\``, wanted: inBlock },
  {
    claim: "the envelope in a code block that opens in the middle of a line",
    text: ({ call }) => `Like this: \`\`\`\n${call}\n\`\`\``,
    wanted: inBlock
  },
  { claim: "the envelope between fences in a line", text: ({ call }) => `Like \`\`\`${call}\`\`\`.`, wanted: inBlock },
  {
    claim: "the envelope in a code block of a list",
    text: ({ call }) => `1. So:\n\n      \`\`\`json\n${call}\n      \`\`\`\n`,
    wanted: inBlock
  },
  {
    claim: "the envelope after inline code and a closed block",
    text: ({ after, call }) => after("Use ```x``` or `` ``` ``:\n```\na\n```\nand `y`.", call),
    wanted: ({ name }) => (name === "llama3" ? "wrong_envelope" : "ToolCalls")
  },
  { claim: "an answer of a tool", text: ({ answer }) => answer, wanted: forgedAnswer },
  {
    claim: "an answer of a tool after prose",
    text: ({ after, answer }) => after("I looked.", answer),
    wanted: forgedAnswer
  },
  {
    claim: "an answer of a tool after a call",
    text: ({ answer, call, end, name }) => call + (name === "harmony" ? end : "\n") + answer,
    wanted: forgedAnswer
  },
  {
    // Where a turn has one message, whoever goes on after its end forges a turn; a harmony turn has several.
    claim: "an answer of a tool after the end of the turn",
    text: ({ answer, call, end }) => call + end + answer,
    wanted: ({ name }) => (name === "harmony" ? "forged_tool_response" : "forged_turn")
  },
  { claim: "another speaker's turn", text: ({ after, turn }) => after("Hi.", turn), wanted: "forged_turn" },
  {
    claim: "another speaker's turn after an end",
    text: ({ end, say, turn }) => say("Hi.") + end + turn,
    wanted: "forged_turn"
  },
  {
    claim: "another speaker's turn after a call",
    text: ({ call, end, turn }) => call + end + turn,
    wanted: "forged_turn"
  },
  {
    claim: "another speaker's turn after an object",
    text: ({ end, say, turn }) => say(`{"name": "Ada"}`) + end + turn,
    wanted: "forged_turn"
  },
  {
    claim: "another speaker's turn after a broken object",
    text: ({ end, say, turn }) => say(`{"name": "Ada", "x": [1,`) + end + turn,
    wanted: "forged_turn"
  },
  {
    // The broken call comes first, and in a family of plain JSON it has its envelope.
    claim: "another speaker's turn in a broken call object",
    text: ({ end, say, turn }) => say(`{"name": "calc", "arguments": {"a": 1`) + end + turn,
    wanted: (wire) => (isJson(wire) ? "invalid_json" : "wrong_envelope")
  },
  {
    claim: "JSON that is an answer",
    text: ({ say }) => say(`{"name": "Ada", "a": [{"b": "calc"}]}`),
    wanted: "FinalText"
  },
  { claim: "a name and nothing else", text: ({ say }) => say(`The tool is {"name": "calc"}.`), wanted: "FinalText" },
  { claim: "code", text: ({ say }) => say("```js\nif (a) { b({ name: 'x' }) }\n```\nuse `{`."), wanted: "FinalText" },
  {
    claim: "a fence that is only mentioned",
    text: ({ say }) => say("Write `` ``` `` or ```x```."),
    wanted: "FinalText"
  }
]

const parse = (id: string, text: string, pieces: ReadonlyArray<ReadonlyArray<string>>, reason: EndReason = "eog") => {
  const codec = Result.getOrThrow(byId(id))
  const whole = parsePieces(codec, [text], options, reason)
  for (const cut of pieces) assert.deepStrictEqual(parsePieces(codec, cut, options, reason), whole)
  return whole.action
}

describe("the matrix", () => {
  it("has a wire for every codec", () => {
    for (const id of ids) assert.doesNotThrow(() => wireOf(id))
  })

  for (const { claim, text, wanted } of rows) {
    it(`has one outcome for ${claim} in every family, at every cut`, () => {
      for (const id of ids) {
        const wire = wireOf(id)
        const turn = text(wire)
        const cuts = turn.length > 500 ? [units(turn)] : [units(turn), ...splits(turn)]
        const expected = typeof wanted === "string" ? wanted : wanted(wire)
        assert.strictEqual(outcomeOf(parse(id, turn, cuts)), expected, `${id}: ${JSON.stringify(turn)}`)
      }
    })
  }
})

/** What the end of a turn makes of the first `size` characters of a call. */
const wantedCut = ({ bodyFrom, call, name, openers }: Wire, size: number, reason: EndReason): Wanted => {
  const cut = call.slice(0, size)
  const opener = openers.find((one) => call.startsWith(one))!
  const half = opener.length / 2
  if (size < opener.length && !(reason === "length" && size > half)) return "FinalText"
  if (reason === "length") return "truncated"
  // The end of a harmony message is no text: what the end of the turn closes is closed, and judged as it stands.
  if (name === "harmony") return size < bodyFrom ? "wrong_envelope" : size === bodyFrom ? "empty_call" : "invalid_json"
  return cut === call ? "ToolCalls" : "unclosed_call"
}

describe("a call that is cut", () => {
  for (const id of ids) {
    const wire = wireOf(id)
    for (const reason of ["eog", "length"] as const) {
      it(`of ${id} anywhere by ${reason} is no answer once it has begun, and never a call`, () => {
        for (let size = 1; size < wire.call.length; size++) {
          const cut = wire.call.slice(0, size)
          const action = parse(id, cut, [units(cut)], reason)
          assert.strictEqual(outcomeOf(action), wantedCut(wire, size, reason), JSON.stringify(cut))
          if (action._tag === "FinalText") assert.strictEqual(action.text, cut)
          // DeepSeek's calls stand in a section: one of them can be whole before the section is.
          const whole = cut.includes("<｜tool▁call▁end｜>") ? 1 : 0
          if (action._tag === "Malformed") assert.lengthOf(action.partial, whole)
        }
      })

      it(`of ${id} by ${reason} behind a whole one does not let that one run alone`, () => {
        const before = wire.call + wire.join
        const opener = wire.openers.find((one) => wire.call.startsWith(one))!
        for (let size = Math.floor(opener.length / 2) + 1; size < wire.call.length; size++) {
          if (reason === "eog" && size < opener.length) continue
          const action = parse(id, before + wire.call.slice(0, size), [], reason)
          assert.strictEqual(action._tag, "Malformed", JSON.stringify(wire.call.slice(0, size)))
          if (action._tag === "Malformed") assert.strictEqual(action.partial[0]?.name, "calc")
        }
      })
    }

    it(`of ${id} is no answer where it stands without its envelope and its name is whole`, () => {
      const text = isJson(wire) ? `So: ${bare}` : bare
      for (let size = text.indexOf(`"calc"`) + 6; size <= text.length; size++) {
        for (const reason of ["eog", "length"] as const) {
          assert.strictEqual(outcomeOf(parse(id, text.slice(0, size), [], reason)), "wrong_envelope")
        }
      }
    })
  }
})

describe("two calls of which one is broken", () => {
  for (const id of ids) {
    const { broken, brokenCode, call, join } = wireOf(id)
    it(`of ${id} are malformed, and the broken one is named`, () => {
      const second = parse(id, call + join + broken, splits(call + join + broken))
      assert.strictEqual(outcomeOf(second), brokenCode)
      const first = parse(id, broken + join + call, splits(broken + join + call))
      assert.strictEqual(outcomeOf(first), brokenCode)
      if (second._tag !== "Malformed" || first._tag !== "Malformed") return
      assert.deepStrictEqual([second.ordinal, second.partial.map((one) => one.name)], [1, ["calc"]])
      assert.deepStrictEqual([first.ordinal, first.partial], [0, []])
    })
  }
})
