import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, newestTrace, runsIn, start, traceOf, until, writ } from "../kit/cli.ts"
import { makeGguf } from "../kit/gguf.ts"

const patience = { timeout: 240_000 }

/** A model that never ends a turn by itself: whatever ends the run came from outside. */
const endless = (cwd: string): ReadonlyArray<string> => {
  writeFileSync(join(cwd, "endless.gguf"), makeGguf({ muteEog: true, ctx: 16_384 }))
  const model = ["--model", "endless.gguf", "--codec", "qwen2.5", "--tools", "none", "--threads", "1"]
  return [
    "run",
    "Go on.",
    ...model,
    "--context",
    "16384",
    "--max-output-tokens",
    "15000",
    "--wall-time",
    "none",
    "--token-events"
  ]
}

const generated = (cwd: string): number =>
  newestTrace(cwd).filter(({ event_type }) => event_type === "generation_token").length

describe("writ run", () => {
  it.live(
    "answers a task of the user's own and leaves no content in its trace unless asked to",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const hidden = yield* writ(["run", "--json", "What is 17.5% of 240?"], { cwd })
        assert.strictEqual(hidden.code, 0, hidden.err)
        const document = JSON.parse(hidden.out)
        assert.include(document.text, "42")
        assert.strictEqual(document.transcript, null)
        const [run] = runsIn(cwd)
        assert.notInclude(traceOf(run!), "17.5%")
        assert.isFalse(existsSync(join(run!, "transcript.yaml")))

        writeFileSync(join(cwd, "writ.config.json"), '{"traceContent": true}')
        const shown = yield* writ(["run", "--quiet", "--prompt-file", "-"], { cwd, input: "What is 17.5% of 240?" })
        assert.strictEqual(shown.code, 0, shown.err)
        assert.strictEqual(shown.out, `${document.text}\n`)
        assert.strictEqual(newestTrace(cwd)[0]?.data["task"], "What is 17.5% of 240?")
        assert.include(readFileSync(join(runsIn(cwd).at(-1)!, "transcript.yaml"), "utf8"), "What is 17.5% of 240?")
      }),
    patience
  )

  it.live(
    "stops at a limit with exit code 5",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const ran = yield* writ(["run", "--json", "--max-turns", "0", "Hello"], { cwd })
        assert.strictEqual(ran.code, 5, ran.err)
        assert.deepStrictEqual(JSON.parse(ran.out).stop, { status: "limit", kind: "model_turns" })
      }),
    patience
  )

  it.live(
    "is cancelled by Ctrl-C in the middle of a turn: exit code 4, and the record says so",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const running = start(endless(cwd), { cwd })
        yield* until(running, () => generated(cwd) > 0)
        running.child.kill("SIGINT")
        const ran = yield* Effect.promise(() => running.ended)
        assert.deepStrictEqual([ran.code, ran.signal], [4, null], ran.err)
        assert.include(ran.out, "cancelled (generation)")
        const trace = newestTrace(cwd)
        assert.deepStrictEqual(
          trace.slice(-2).map(({ event_type }) => event_type),
          ["turn_rolled_back", "run_cancelled"]
        )
        assert.strictEqual(trace.at(-1)?.data["at"], "generation")
      }),
    patience
  )

  it.live(
    "ends at once at the second signal, with exit code 130",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const running = start(endless(cwd), { cwd })
        yield* until(running, () => generated(cwd) > 0)
        // Held while both arrive, so that the first one cannot have its effect before the second is there.
        for (const signal of ["SIGSTOP", "SIGTERM", "SIGINT", "SIGCONT"] as const) running.child.kill(signal)
        const ran = yield* Effect.promise(() => running.ended)
        assert.deepStrictEqual([ran.code, ran.signal], [130, null], ran.err)
      }),
    patience
  )

  it.live(
    "is cancelled without a word when nobody reads its output any more",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const running = start(endless(cwd), { cwd })
        yield* until(running, () => generated(cwd) > 0)
        running.child.stdout?.destroy()
        const ran = yield* Effect.promise(() => running.ended)
        assert.deepStrictEqual([ran.code, ran.err], [4, ""])
        assert.strictEqual(newestTrace(cwd).at(-1)?.event_type, "run_cancelled")
      }),
    patience
  )

  it.live(
    "killed at any moment, it leaves a trace that is read up to its last whole line",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        for (const events of [3, 40]) {
          const running = start([...endless(cwd), "--run-dir", `run-${events}`], { cwd })
          const path = join(cwd, `run-${events}`, "trace.jsonl")
          const count = () => (existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0)
          yield* until(running, () => count() >= events)
          running.child.kill("SIGKILL")
          assert.strictEqual((yield* Effect.promise(() => running.ended)).signal, "SIGKILL")

          const { code, out } = yield* invoke(["trace", "inspect", "--json", path])
          assert.deepStrictEqual([code, JSON.parse(out).status], [0, "unfinished"])
          assert.strictEqual(JSON.parse(out).counts.events, count())
        }
      }),
    patience
  )
})
