/** Traces of scripted runs as records, and what may be done to them. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { type TraceRun, takeApart } from "../../src/effects/trace/TraceRun.ts"

export const recordsOf = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

export const runOf = (text: string): TraceRun => takeApart(recordsOf(text))

/** The same run under another name and key, as if it had been run again elsewhere. Works on text without content only. */
export const rekeyed = (text: string, runId = "run-9"): string =>
  text
    .replaceAll('"run_id":"run-1"', `"run_id":"${runId}"`)
    .replaceAll(
      /"hmac":"([0-9a-f]{64})"/g,
      (_, hmac: string) => `"hmac":"${createHash("sha256").update(`${runId} ${hmac}`).digest("hex")}"`
    )

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, "../fixtures", name), "utf8")

/** A trace of the predecessor, written after the description of its schema. */
export const emberText: string = fixture("ember-trace.jsonl")

/** Another one, recorded without content, in which nearly everything goes wrong. */
export const emberRough: string = fixture("ember-trace-rough.jsonl")
