/**
 * `writ approve RUN` and `writ deny RUN`: show the call a stopped run waits with, record what somebody decided about it, and
 * go on with the run. The decision is on disk before anything follows from it, and is for exactly that call.
 */
import { resolve } from "node:path"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Approvals from "../actors/Approvals.ts"
import type { ApprovalRequest } from "../effects/Policy.ts"
import { load, type RawSettings } from "../effects/Settings.ts"
import { approvalLines } from "./ApprovalView.ts"
import { commandOf, repeated } from "./Continuing.ts"
import { inJson, usage } from "./Ending.ts"
import type { Showing } from "./Execute.ts"
import * as FileToolSource from "./FileToolSource.ts"
import { moment } from "./LedgerView.ts"
import { personOf } from "./Person.ts"
import { inline, jsonText } from "./Printable.ts"
import { Provisions } from "./Provisions.ts"
import * as Resuming from "./Resuming.ts"
import { run } from "./run.ts"
import * as Screen from "./Screen.ts"
import { waitingFor, waits } from "./Waiting.ts"

export interface DecideFlags extends Showing {
  readonly run: string
  /** The call that is meant; undefined is the one the run waits with. */
  readonly call: string | undefined
  readonly reason: string | undefined
  readonly by: string | undefined
  readonly resume: boolean
  readonly settings: RawSettings
}

type Decision = Approvals.Approval["decision"]

const approvalOf = (
  request: ApprovalRequest,
  decision: Decision,
  { by, reason }: { readonly by: string; readonly reason: string | undefined },
  now: number,
  holdsMillis: number
): Approvals.Approval => ({
  schema: "writ.approval.v1",
  run: request.runId,
  call: request.callId,
  tool: request.tool,
  digest: request.digest,
  decision,
  by,
  at: Approvals.moment(now),
  // A no stays a no.
  expires_at: decision === "deny" ? null : Approvals.moment(now + holdsMillis),
  ...(reason === undefined ? {} : { reason })
})

const saidOf = ({ by, call, decision, expires_at }: Approvals.Approval): string =>
  decision === "deny"
    ? `${call} denied by ${inline(by)}`
    : `${call} approved by ${inline(by)}, until ${moment(Date.parse(expires_at ?? ""))}`

const show = Effect.fnUntraced(function* (
  request: ApprovalRequest,
  approval: Approvals.Approval,
  flags: DecideFlags,
  next: string
) {
  if (flags.json) {
    // With the run to follow, its document is the one.
    const { schema: _, ...rest } = approval
    if (!flags.resume) yield* Console.log(jsonText({ ...rest, arguments: request.arguments, next }))
    return
  }
  if (flags.quiet) return
  const { columns, line, paint } = yield* Screen.make(flags.color)
  for (const text of approvalLines(request, paint, columns)) line(text)
  line((approval.decision === "allow" ? paint.green : paint.red)(saidOf(approval)))
  if (flags.resume) line()
  else line(`${paint.dim("next".padEnd(10))} ${paint.bold(next)}`)
})

const decide = Effect.fnUntraced(function* (flags: DecideFlags, decision: Decision) {
  const found = yield* Resuming.find(flags.run, decision === "allow" ? "approve" : "deny")
  const at = yield* waits(found, flags.call)
  const resolved = yield* load({ ...Resuming.recorded(found), ...flags.settings })
  const settings = { ...resolved.settings, workspace: resolve(resolved.settings.workspace) }
  const own = yield* (yield* Provisions).tools
  if (flags.resume) yield* Resuming.checkTools(found, own, settings)
  const files = yield* FileToolSource.open(settings.toolsDir)
  const tools = yield* Effect.catch(FileToolSource.withFiles(own, files), ({ message, tool }) =>
    usage(`--tools-dir: ${tool}: ${message}`)
  )
  const request = yield* waitingFor(at, tools, settings)
  if (flags.resume) {
    // What would keep the run from going on is better known before anybody has decided.
    yield* Resuming.checkFixed(found, flags.settings)
    yield* Resuming.checkPermitted(found, settings)
  }
  const by = yield* personOf(flags.by)
  const now = yield* Clock.currentTimeMillis
  const approval = approvalOf(request, decision, { by, reason: flags.reason }, now, settings.approvalExpiry)
  yield* Approvals.append(found.directory, approval)
  const next = commandOf(["run", "--resume"], request.runId, found.directory, repeated(resolved))
  yield* show(request, approval, flags, next)
})

const decided = (decision: Decision) => (flags: DecideFlags) =>
  Effect.gen(function* () {
    yield* decide(flags, decision).pipe(inJson(flags.json))
    if (!flags.resume) return
    const { color, json, quiet, run: resume, settings } = flags
    const nothing = { task: [], prompt: undefined, promptFile: undefined, answer: undefined }
    yield* run({ ...nothing, resume, json, quiet, color, settings })
  })

export const approve = decided("allow")
export const deny = decided("deny")
