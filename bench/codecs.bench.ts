/**
 * How fast turns are read: plain text and text full of calls, in pieces of the size an engine sends, for every family. In
 * processor time of this thread, since the machine does other things as well.
 */
import * as Result from "effect/Result"
import type { Codec } from "../src/engine/codecs/Codec.ts"
import { byId, ids } from "../src/engine/codecs/Families.ts"
import { flatten } from "../src/engine/Prompt.ts"
import type { ToolSpec } from "../src/tools/ToolCall.ts"

const tools: ReadonlyArray<ToolSpec> = ["calculate", "read_text_file"].map((name) => ({
  name,
  description: "",
  parameters: { type: "object", properties: { expression: { type: "string" }, rows: { type: "array" } } }
}))

/** UTF-16 units of one piece: what a fast engine writes in 16 ms. */
const pieceUnits = 64

const prose =
  "The relative improvement is the difference of the two scores divided by the first one, in percent. " +
  "Written out (see `baseline.json`): 0.744 - 0.612 = 0.132; 0.132 / 0.612 is about 21.57 %.\n\n"

/** A turn of about `units` characters that ends in calls, or has none. */
export const turnOf = (codec: Codec, kind: "plain" | "calls", units: number): string => {
  if (kind === "plain")
    return `${codec.id.startsWith("gpt-oss") ? "<|channel|>final<|message|>" : ""}${prose.repeat(Math.ceil(units / prose.length))}`
  const args = {
    expression: "(0.744 - 0.612) / 0.612 * 100",
    rows: [
      { id: 1, text: 'a "b" {c}\n' },
      { id: 2, text: "d" }
    ]
  }
  const write = (count: number) =>
    flatten(
      codec.written(
        {
          role: "assistant",
          content: "",
          calls: Array.from({ length: count }, () => ({ name: "calculate", arguments: args }))
        },
        { tools, thinking: false }
      )
    )
  const [one, two] = [write(1).length, write(2).length]
  return write(Math.max(1, Math.ceil((units - one) / (two - one))))
}

export const read = (codec: Codec, text: string): string => {
  const parser = codec.parser({ tools })
  for (let at = 0; at < text.length; at += pieceUnits) parser.push(text.slice(at, at + pieceUnits))
  return parser.end("eog").action._tag
}

/** MB of UTF-8 a second: the best of some runs, by processor time. */
const speed = (codec: Codec, text: string, wanted: string): number => {
  const bytes = Buffer.byteLength(text)
  let best = Infinity
  for (let run = 0; run < 12; run++) {
    const before = process.cpuUsage()
    const found = read(codec, text)
    const { system, user } = process.cpuUsage(before)
    if (found !== wanted) throw new Error(`${codec.id}: the turn came to ${found}`)
    best = Math.min(best, user + system)
  }
  return bytes / best
}

export const codecs = async (): Promise<Record<string, { readonly plain: number; readonly calls: number }>> => {
  const out: Record<string, { readonly plain: number; readonly calls: number }> = {}
  for (const id of ids) {
    const codec = Result.getOrThrow(byId(id))
    const [plain, calls] = [turnOf(codec, "plain", 2_000_000), turnOf(codec, "calls", 1_000_000)]
    out[id] = {
      plain: Math.round(speed(codec, plain, "FinalText")),
      calls: Math.round(speed(codec, calls, "ToolCalls"))
    }
  }
  return out
}

if (import.meta.main) console.table(await codecs())
