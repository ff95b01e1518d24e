import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { directory, newestTrace, type Process, runsIn, start, traceOf, until, writ } from "../kit/cli.ts"
import { childrenOf, ended, isThere } from "../kit/engineLife.ts"

const run = ["run", "--isolation", "process", "--trace-content"]
const task = "What is 17 * 3?"

/** Holds the engine where it is at this moment of the run, and ends it there. Whatever it was asked never comes back. */
const strike = Effect.fnUntraced(function* (running: Process, cwd: string, at: string) {
  yield* until(running, () => newestTrace(cwd).some(({ event_type: type }) => type === at))
  const [pid] = childrenOf(running.child.pid!)
  assert.isDefined(pid, running.said())
  process.kill(pid!, "SIGKILL")
  yield* ended(pid!)
  return pid!
})

const only = (cwd: string): string => {
  const runs = runsIn(cwd)
  assert.strictEqual(runs.length, 1)
  return runs[0]!
}

describe("writ run --isolation process", () => {
  it.live(
    "goes on when its engine is killed: every call once, a valid record, and no process left",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const running = start([...run, task], { cwd })
        const pid = yield* strike(running, cwd, "run_started")
        const { code, err, out } = yield* Effect.promise(() => running.ended)
        assert.strictEqual(code, 0, out + err)
        assert.include(out + err, "51")
        assert.include(out + err, "the engine crashed and was opened again")
        const trace = newestTrace(cwd)
        const types = trace.map(({ event_type: type }) => type)
        assert.deepStrictEqual(
          trace.find(({ event_type: type }) => type === "engine_restarted")?.data["cause"],
          "crashed"
        )
        assert.strictEqual(types.filter((type) => type === "tool_execution_started").length, 1)
        assert.deepStrictEqual(validateText(traceOf(only(cwd))).violations, [])
        assert.isFalse(isThere(pid))
        assert.deepStrictEqual(childrenOf(running.child.pid!), [])
      }),
    240_000
  )

  it.live(
    "fails with code 1 where the engine may not be opened again, and the run can be resumed",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const running = start([...run, "--restarts", "0", task], { cwd })
        yield* strike(running, cwd, "run_started")
        const { code, err, out } = yield* Effect.promise(() => running.ended)
        assert.strictEqual(code, 1, out + err)
        assert.match(out + err, /SIGKILL.*restarts are off/s)
        assert.strictEqual(newestTrace(cwd).at(-1)?.event_type, "run_failed")
        const resumed = yield* writ(["run", "--resume", only(cwd), "--restarts", "3"], { cwd })
        assert.strictEqual(resumed.code, 0, resumed.out + resumed.err)
        assert.include(resumed.out + resumed.err, "51")
      }),
    240_000
  )
})
