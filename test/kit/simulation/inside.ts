/** What must be true of a run that is a call of another: each record names the other, and what the call came to is what it says. */
import { type Line, lines } from "../script.ts"
import type { Report } from "./checks.ts"
import type { RunSeen, World } from "./world.ts"

const about = (trace: ReadonlyArray<Line>, type: string, call: unknown) =>
  trace.filter(({ data, event_type }) => event_type === type && data["call"] === call)

/** Its artifacts, all tries together: they are published under one name. */
const checkArtifacts = (world: World, seen: RunSeen, report: Report): void => {
  const tries = world.runs.filter(({ effectRun }) => effectRun === seen.effectRun)
  const said = tries
    .flatMap((one) => lines(one.lines))
    .filter(({ event_type }) => event_type === "artifact_written")
    .map(({ data }) => data["sha256"])
  const stored = world.puts.filter(({ runId }) => runId === seen.effectRun).map(({ sha256 }) => sha256)
  const sorted = (list: ReadonlyArray<unknown>) => [...new Set(list)].sort().join(" ")
  if (sorted(stored) !== sorted(said)) {
    report("artifacts and record agree", `${stored.length} stored, ${said.length} recorded`)
  }
}

export const checkInside = (world: World, seen: RunSeen, around: RunSeen, report: Report): void => {
  const trace = lines(seen.lines)
  const outer = lines(around.lines)
  const parent = trace[0]?.data["parent"] as { run: string; call: string; depth: number } | undefined
  if (parent?.run !== around.label || parent.depth !== 1) {
    report("a run inside another names it", JSON.stringify(parent ?? null))
    return
  }
  const named = about(outer, "child_run_started", parent.call).filter(({ data }) => data["run"] === seen.label)
  if (named.length !== 1) report("a run inside another is named by it", `${named.length} times`)
  const finish = about(outer, "tool_execution_finished", parent.call)[0]
  const last = trace.at(-1)
  const retried = about(outer, "retry_scheduled", parent.call).length > 0
  if (finish?.data["ok"] === true && !retried && last?.event_type !== "run_completed") {
    report("a call that succeeded is a run that completed", `it ended with ${last?.event_type}`)
  }
  for (const { callId, order, run } of world.poolCalls) {
    if (run !== seen.label) continue
    if (order > (around.finished ?? Infinity)) report("nothing runs after the end", callId)
  }
  checkArtifacts(world, seen, report)
}
