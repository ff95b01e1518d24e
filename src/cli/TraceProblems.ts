/**
 * What went wrong in a run, counted from its timeline, and whether its record can be believed. The latter costs as much as
 * reading the trace once more, so for a long one it is left to `writ trace validate`, as are the artifacts beside it.
 */
import { statSync } from "node:fs"
import * as Effect from "effect/Effect"
import { schemaId } from "../actors/TraceEvent.ts"
import type { TraceReadError } from "../effects/trace/TraceReader.ts"
import type { Row, Summary } from "../effects/trace/TraceTimeline.ts"
import { type Verdict, validateFile } from "../effects/trace/TraceValidator.ts"
import { count, inline } from "./Printable.ts"

/** Bytes of a trace that is judged at once: a fraction of a second. */
const judgedBytes = 8 * 1024 * 1024

/** Violations that are named; `trace validate` names more. */
const namedViolations = 5

/** Rows of the timeline that are problems of their own, and their names. How the run ended is its status, not one of these. */
const names: Readonly<Record<string, readonly [key: string, noun: string, what: string]>> = {
  failed: ["failed", "call", "failed"],
  REJECTED: ["rejected", "call", "rejected"],
  MALFORMED: ["malformed", "turn", "malformed"],
  "rolled back": ["rolled_back", "turn", "rolled back"],
  late: ["late", "answer", "too late"],
  UNCOMMITTED: ["uncommitted", "answer", "never read by the model"],
  skipped: ["skipped", "call", "skipped"],
  ESCALATED: ["escalated", "effect", "that nobody knows of"]
}

/** Counts the rows that are problems. */
export class Problems {
  readonly #counts = new Map<string, number>()

  readonly see = ({ detail, label, tone }: Row): void => {
    // Ember says of a malformed turn once more that it was rejected.
    if (label === "REJECTED" && detail.startsWith("[malformed_tool_call]")) return
    if (tone === "bad" && Object.hasOwn(names, label)) this.#counts.set(label, (this.#counts.get(label) ?? 0) + 1)
  }

  /** `1 call rejected, 2 turns malformed`, in the order of the table; `none`. */
  get text(): string {
    const parts = Object.entries(names).flatMap(([label, [, noun, what]]) => {
      const number = this.#counts.get(label)
      return number === undefined ? [] : [`${count(number, noun)} ${what}`]
    })
    return parts.length === 0 ? "none" : parts.join(", ")
  }

  get document(): Readonly<Record<string, number>> {
    return Object.fromEntries(Object.entries(names).map(([label, [key]]) => [key, this.#counts.get(label) ?? 0]))
  }
}

/** What the validator says; `undefined` of a trace of another schema, and of one that is too long to be judged by the way. */
export const judge = (path: string, { schema }: Summary): Effect.Effect<Verdict | undefined, TraceReadError> =>
  Effect.suspend(() =>
    schema === schemaId && (statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= judgedBytes
      ? validateFile(path)
      : Effect.succeed(undefined)
  )

/** Of the record, in words: the first line is what comes to, the others name what does not hold. */
export const recordLines = (verdict: Verdict | undefined, { redactions, schema }: Summary): ReadonlyArray<string> => {
  if (verdict === undefined) {
    if (schema === undefined) return ["there is none"]
    return [
      schema === schemaId
        ? "long, so not judged here: writ trace validate"
        : `of schema ${inline(schema)}, which is not judged`
    ]
  }
  const { complete, violationCount, violations } = verdict
  const replaced = redactions === 0 ? "" : `; ${count(redactions, "replacement")} by redaction rules`
  if (violationCount === 0) return [`${complete ? "valid" : "valid as far as it goes"}${replaced}`]
  const named = violations.slice(0, namedViolations)
  return [
    `${count(violationCount, "problem")}: it cannot be believed`,
    ...named.map(
      ({ invariant, message, seq }) => `${invariant} ${message}${seq === undefined ? "" : ` (event ${seq})`}`
    ),
    ...(violationCount > named.length ? [`and ${violationCount - named.length} more: writ trace validate`] : [])
  ].map(inline)
}

export const violationsDocument = ({ violations }: Pick<Verdict, "violations">) =>
  violations.map(({ invariant, line, message, seq }) => ({ invariant, seq: seq ?? null, line: line ?? null, message }))

export const recordDocument = (verdict: Verdict | undefined) =>
  verdict === undefined
    ? null
    : {
        valid: verdict.violationCount === 0,
        complete: verdict.complete,
        violation_count: verdict.violationCount,
        violations: violationsDocument(verdict)
      }
