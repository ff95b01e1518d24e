/**
 * The directory that a replay works in, and that goes with it: a workspace that is empty, or a copy for tools that are
 * programs, and the artifacts of the run as they were when each call began. Nothing is written anywhere else.
 */
import { createHash } from "node:crypto"
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TraceRecord } from "../effects/trace/TraceReader.ts"
import { eventOf, type TraceCall } from "../effects/trace/TraceRun.ts"
import type { TraceFile } from "./TraceFile.ts"

export interface Scratch {
  readonly workspace: string
  readonly artifacts: string
  /** Puts in place what the run had published before the call began. Names the first artifact that is not there any more. */
  readonly before: (call: TraceCall) => string | undefined
  /** A copy of a workspace for programs, which may write where they only say they read. `undefined`: it is too large for that. */
  readonly copyOf: (workspace: string) => string | undefined
}

const mostFiles = 10_000
const mostBytes = 256 * 1024 * 1024

/** Links are copied as links; what they lead to is not looked at. */
const isSmall = (directory: string): boolean => {
  let [files, bytes] = [0, 0]
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    files += 1
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0
    if (files > mostFiles || bytes > mostBytes) return false
  }
  return true
}

/** Pipes, sockets and devices are not for copying. */
const isCopied = (path: string): boolean => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found !== undefined && (found.isDirectory() || found.isFile() || found.isSymbolicLink())
}

const written = (records: ReadonlyArray<TraceRecord>): ReadonlyArray<TraceRecord> =>
  records.filter(({ event_type: type }) => type === "artifact_written")

/** Copies an artifact unless it is there already; false where its file is gone or is another one. */
const copied = ({ data }: TraceRecord, from: string, to: string): boolean => {
  const id = basename(String(data["artifact_id"]))
  if (existsSync(join(to, id))) return true
  const file = join(from, id)
  if (!existsSync(file) || createHash("sha256").update(readFileSync(file)).digest("hex") !== data["sha256"])
    return false
  copyFileSync(file, join(to, id))
  return true
}

/** @param earlier the traces that the run continued: it had their artifacts from its start */
export const make = ({ path, records }: TraceFile, earlier: ReadonlyArray<ReadonlyArray<TraceRecord>>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-replay-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
    ),
    (directory): Scratch => {
      const [workspace, artifacts] = [join(directory, "workspace"), join(directory, "artifacts")]
      for (const made of [workspace, artifacts]) mkdirSync(made)
      const from = join(dirname(path), "artifacts")
      const inherited = earlier.flatMap(written)
      const own = written(records)
      return {
        workspace,
        artifacts,
        copyOf: (from) => {
          if (!isSmall(from)) return undefined
          cpSync(from, workspace, { recursive: true, verbatimSymlinks: true, filter: isCopied })
          return workspace
        },
        before: (call) => {
          const began = eventOf(call, "tool_execution_started")?.seq ?? 0
          const gone = [...inherited, ...own.filter(({ seq }) => seq < began)].find(
            (one) => !copied(one, from, artifacts)
          )
          return gone === undefined ? undefined : String(gone.data["artifact_id"])
        }
      }
    }
  ) satisfies Effect.Effect<Scratch, never, Scope.Scope>
