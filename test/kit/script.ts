/** Builds what a model writes, and reads what a run left. */
import type { Outcome } from "../../src/effects/Outcome.ts"

/** One call in the Qwen2.5 form. */
export const call = (name: string, args: unknown): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`

/** Several calls in one turn. */
export const calls = (...all: ReadonlyArray<readonly [name: string, args: unknown]>): string =>
  all.map(([name, args]) => call(name, args)).join("\n")

export interface Line {
  readonly seq: number
  readonly event_type: string
  readonly step: string
  readonly phase: string | null
  readonly data: Record<string, unknown>
  readonly prev: string
  readonly run_id: string
  readonly ts_epoch_ms?: number
}

export const lines = (text: string): ReadonlyArray<Line> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line)

export const types = (text: string): ReadonlyArray<string> => lines(text).map((line) => line.event_type)

/** The transcript as role labels, for comparing shapes. */
export const shape = (outcome: Outcome): ReadonlyArray<string> =>
  outcome.transcript.map((entry) =>
    entry.kind === "assistant" ? `assistant:${entry.turn}` : entry.kind === "tool" ? `tool:${entry.name}` : entry.kind
  )
