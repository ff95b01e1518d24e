/** The contract of every tool that only hands an artifact over: the runtime publishes it, under a name made of its bytes. */
import * as Effect from "effect/Effect"
import type { Statement } from "../Contract.ts"
import { broken, holds, type Touch, type Verdict } from "../Terms.ts"

export const publishing = {
  risk: "local-write",
  // Temporary sibling, then rename to a name that follows from the content: there whole or not at all, and twice is once.
  ledger: "atomic",
  retry: "safe",
  reversible: true,
  evidence: { source: "probe", describes: "the published file and its SHA-256" },
  touches: ({ name }: { readonly name: string }): ReadonlyArray<Touch> => [
    { verb: "write", resource: `artifact:${name}` }
  ]
} as const satisfies Partial<Statement>

interface Handed {
  readonly name: string
  readonly bytes: number
}

/** Holds where what the tool says it handed over is what it was asked for. */
export const handedOver = (asked: Handed, said: Handed): Effect.Effect<Verdict> =>
  Effect.succeed(
    asked.name === said.name && asked.bytes === said.bytes
      ? holds({ name: said.name, bytes: said.bytes })
      : broken(
          `it was to hand over ${asked.name} with ${asked.bytes} bytes, and says ${said.name}, ${said.bytes} bytes`
        )
  )

const previewLines = 40
const previewWidth = 400

/** A new file as a diff shows it: its first lines after `+`, and how much is left out. */
export const addedText = (name: string, content: string): string => {
  const lines = content.replace(/\r?\n$/, "").split(/\r?\n/)
  const shown = lines.slice(0, previewLines).map((line) => `+ ${cutLine(line)}`)
  const left = lines.length - shown.length
  const note = left === 0 ? [] : [`… (${left} more ${left === 1 ? "line" : "lines"})`]
  return [`new file ${name}, ${Buffer.byteLength(content)} bytes`, ...shown, ...note].join("\n")
}

const cutLine = (line: string): string => {
  if (line.length <= previewWidth) return line
  const kept = line
    .slice(0, previewWidth)
    .toWellFormed()
    .replace(/\ufffd$/u, "")
  return `${kept}… (${line.length - kept.length} more characters)`
}
