/**
 * Owns `approvals.jsonl` beside a run's trace: what people decided about calls the run waits with, each decision for exactly
 * one call with exactly these arguments. Lines are only ever added, whole and on disk before anything follows from them.
 * It decides nothing itself; arguments are in it as a digest only.
 */
import { closeSync, constants, fstatSync, fsyncSync, openSync, readFileSync, readSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reasonOf, syncDirectory } from "./Directories.ts"

export const fileName = "approvals.jsonl"

const Moment = Schema.String.check(Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/))

/** One decision. `run`: the first part of the run, which its effects are keyed under. A `deny` does not expire. */
export const Approval = Schema.Struct({
  schema: Schema.Literal("writ.approval.v1"),
  run: Schema.String,
  call: Schema.String,
  tool: Schema.String,
  /** SHA-256 (hex) over tool and canonical arguments. */
  digest: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)),
  decision: Schema.Literals(["allow", "deny"]),
  by: Schema.String,
  at: Moment,
  expires_at: Schema.NullOr(Moment),
  reason: Schema.optionalKey(Schema.String)
})
export type Approval = typeof Approval.Type

/** The file cannot be read or written. */
export class ApprovalsError extends Schema.TaggedError<ApprovalsError>()("ApprovalsError", {
  message: Schema.String
}) {}

/** UTC, as the file has it. */
export const moment = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Approval))

const tried = <A>(path: string, what: string, attempt: () => A): Effect.Effect<A, ApprovalsError> =>
  Effect.try({
    try: attempt,
    catch: (cause) => new ApprovalsError({ message: `${path} cannot be ${what}: ${reasonOf(cause)}` })
  })

/** A line that a crash has cut must not swallow the next one. */
const endsInLine = (fd: number): boolean => {
  const { size } = fstatSync(fd)
  if (size === 0) return true
  const last = new Uint8Array(1)
  readSync(fd, last, 0, 1, size - 1)
  return last[0] === 0x0a
}

const add = (path: string, approval: Approval): void => {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants
  const fd = openSync(path, O_RDWR | O_APPEND | O_CREAT | (O_NOFOLLOW ?? 0), 0o600)
  try {
    const isNew = fstatSync(fd).size === 0
    const line = Buffer.from(`${endsInLine(fd) ? "" : "\n"}${JSON.stringify(approval)}\n`)
    // One write, so that two processes never mix their lines.
    if (writeSync(fd, line) !== line.length) throw new Error("there is no space left")
    fsyncSync(fd)
    if (isNew) syncDirectory(dirname(path))
  } finally {
    closeSync(fd)
  }
}

/** Adds a decision to the record of the run in `directory`. It is on disk when this succeeds. */
export const append = (directory: string, approval: Approval): Effect.Effect<void, ApprovalsError> => {
  const path = join(directory, fileName)
  return tried(path, "written", () => add(path, approval))
}

const linesOf = (path: string): ReadonlyArray<string> => {
  try {
    return readFileSync(path, "utf8").split("\n")
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return []
    throw cause
  }
}

/** The decisions on record, oldest first. A line that is none (a crash has cut it, somebody wrote it) decides nothing. */
export const read = (directory: string): Effect.Effect<ReadonlyArray<Approval>, ApprovalsError> => {
  const path = join(directory, fileName)
  return Effect.map(
    tried(path, "read", () => linesOf(path)),
    (lines) => lines.flatMap((line) => Option.toArray(decode(line)))
  )
}

/** What a decision is looked for: this call of this run, with these arguments. */
export interface Wanted {
  readonly runId: string
  readonly callId: string
  readonly digest: string
}

export type Found =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Decided"; readonly approval: Approval }
  /** It was allowed, but too long ago. */
  | { readonly _tag: "Expired"; readonly approval: Approval }
  /** The newest decision about the call is about other arguments, or another tool. */
  | { readonly _tag: "Other"; readonly approval: Approval }

/** The newest decision about a call counts. `now`: milliseconds since 1970. */
export const find = (approvals: ReadonlyArray<Approval>, wanted: Wanted, now: number): Found => {
  const approval = approvals.findLast(({ call, run }) => run === wanted.runId && call === wanted.callId)
  if (approval === undefined) return { _tag: "Nothing" }
  if (approval.digest !== wanted.digest) return { _tag: "Other", approval }
  const until = approval.expires_at === null ? Infinity : Date.parse(approval.expires_at)
  // One that does not say until when holds for no time at all.
  const holds = approval.decision === "deny" || (approval.expires_at !== null && now <= until)
  return { _tag: holds ? "Decided" : "Expired", approval }
}
