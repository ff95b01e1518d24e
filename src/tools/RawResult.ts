/**
 * What a tool answered when it was not its result, kept as bytes for whoever has to find out: bounded, and never told to a
 * model. It may be anything, so looking at it must neither fail nor run code of the tool.
 */
import { inspect } from "node:util"
import type { ProducedArtifact } from "./ToolCall.ts"

/** Most bytes that are kept. */
const maxRawBytes = 64 * 1024

const options = {
  depth: 8,
  maxArrayLength: 1000,
  maxStringLength: maxRawBytes,
  customInspect: false,
  getters: false,
  showProxy: true
}

const textOf = (value: unknown): string => {
  try {
    return typeof value === "string" ? value : inspect(value, options)
  } catch {
    return "(it cannot be shown)"
  }
}

export const rawResult = (value: unknown): ProducedArtifact => {
  const bytes = Buffer.from(textOf(value))
  // A cut in the middle of a character is replaced when somebody reads it as text.
  return { name: "bad-result.txt", mediaType: "text/plain", bytes: Uint8Array.from(bytes.subarray(0, maxRawBytes)) }
}
