/** Texts that a careless reader would take long over, by the number of their parts. */
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import { tool } from "./codecs.ts"
import { wireOf } from "./wires.ts"

const calls = (codec: Codec, text: string, count: number): string => {
  const call = { name: "calc", arguments: text === "" ? {} : { a: text, b: [1, { c: null }] } }
  return flatten(
    codec.written(
      { role: "assistant", content: "", calls: Array.from({ length: count }, () => call) },
      { tools: [tool("calc")], thinking: false }
    )
  )
}

export const slowTexts: Readonly<Record<string, (codec: Codec, count: number) => string>> = {
  prose: ({ id }, count) => wireOf(id).say("Some words, `code` and a line.\n".repeat(count / 10)),
  calls: (codec, count) => calls(codec, 'a "b" {c}', count / 10),
  "calls without arguments": (codec, count) => calls(codec, "", count / 10),
  openers: ({ id }, count) => `${wireOf(id).openers[0]}\n`.repeat(count),
  "openers that are cut": ({ id }, count) => wireOf(id).say(`${wireOf(id).openers[0]!.slice(0, -1)} `.repeat(count)),
  braces: ({ id }, count) => wireOf(id).say("{".repeat(count)),
  "braces on lines": ({ id }, count) => wireOf(id).say("x\n{".repeat(count)),
  // Objects nest as deep as JSON is read: enough of them that the smaller text gets there too.
  "objects that do not end": ({ id }, count) => wireOf(id).say(`x ${`{"a": [1, `.repeat(count / 2)}`),
  "names that do not end": ({ id }, count) => wireOf(id).say(`x ${`{"name": "calc `.repeat(count / 5)}`),
  "objects with a foreign key": ({ id }, count) => wireOf(id).say(`{"id": 1, "x": [\n`.repeat(count / 2)),
  backticks: ({ id }, count) => wireOf(id).say("`".repeat(count)),
  "backticks apart": ({ id }, count) => wireOf(id).say("` `` ``` ".repeat(count / 5)),
  fences: ({ id }, count) => wireOf(id).say("```\n".repeat(count)),
  "a call that does not end": ({ id }, count) => wireOf(id).call.slice(0, -3) + `{"a": [" \``.repeat(count / 5)
}

export const slowTools = [tool("calc", { type: "object", properties: { a: { type: "string" } } }), tool("read")]

/** Reads a text in pieces of `size` characters. */
export const readSlow = (codec: Codec, text: string, size: number): void => {
  const parser = codec.parser({ tools: slowTools })
  for (let at = 0; at < text.length; at += size) parser.push(text.slice(at, at + size))
  parser.end("eog")
}
