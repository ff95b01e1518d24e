import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, runsIn, start, traceOf, until, writ } from "../kit/cli.ts"
import { call, lines } from "../kit/script.ts"

const timeout = 180_000

interface Lines {
  readonly turns: ReadonlyArray<unknown>
  readonly input: string
  readonly args?: ReadonlyArray<string>
}

const chat = Effect.fnUntraced(function* ({ args = [], input, turns }: Lines) {
  const cwd = yield* directory
  writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns }))
  return { cwd, ...(yield* writ(["chat", "--script", "script.json", ...args], { cwd, input })) }
})

describe("writ chat without a terminal", () => {
  it.live(
    "takes each line as a message, and prints answers and nothing else",
    () =>
      Effect.gen(function* () {
        const turns = ["One.", "Two\nlines.", "Three."]
        const { code, cwd, err, out } = yield* chat({
          turns,
          input: "first\n\n/undo\ngoes \\\non\nlast without an end"
        })
        assert.deepStrictEqual([code, out], [0, "One.\nTwo\nlines.\nThree.\n"])
        assert.strictEqual(err, "  Taken back: first\n")
        assert.lengthOf(runsIn(cwd), 3)
        const verdict = yield* invoke(["trace", "validate", ...runsIn(cwd)])
        assert.strictEqual(verdict.code, 0, verdict.out)
      }),
    timeout
  )

  it.live(
    "prints one document a line with --json, and ends with the code of the first message without an answer",
    () =>
      Effect.gen(function* () {
        const turns = ["One.", call("lookup", { key: "x" }), call("lookup", { key: "x" }), "Last."]
        const args = ["--json", "--max-tool-calls", "1", "--max-turns", "2"]
        const { code, out } = yield* chat({ turns, input: "first\nsecond\nthird\n/tools\n", args })
        const documents = out
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line))
        assert.deepStrictEqual(
          documents.map(({ exit_code, stop, text }) => [exit_code, stop.status, text]),
          [
            [0, "completed", "One."],
            [5, "limit", null],
            [0, "completed", "Last."]
          ]
        )
        assert.strictEqual(code, 5)
        assert.lengthOf(new Set(documents.map(({ run_id }) => run_id)), 3)
      }),
    timeout
  )

  it.live(
    "answers a question of the model with the next line, and ends with 6 where none follows",
    () =>
      Effect.gen(function* () {
        const turns = [call("clarify", { question: "Which city?" }), "Sunny in Rome."]
        const args = ["--tools", "clarify"]
        const both = yield* chat({ turns, input: "weather?\nRome\n", args })
        assert.deepStrictEqual([both.code, both.out], [0, "Which city?\nSunny in Rome.\n"])
        const one = yield* chat({ turns, input: "weather?\n", args })
        assert.deepStrictEqual([one.code, one.out], [6, "Which city?\n"])
      }),
    timeout
  )

  it.live(
    "takes an answer to a question back, and then the question",
    () =>
      Effect.gen(function* () {
        const turns = [call("clarify", { question: "Which city?" }), "Sunny in Rome.", "Rain in Paris.", "Hello."]
        const { code, cwd, err, out } = yield* chat({
          turns,
          input: "weather?\nRome\n/undo\nParis\n/undo\n/undo\n/undo\nhi\n",
          args: ["--tools", "clarify"]
        })
        assert.deepStrictEqual([code, out], [0, "Which city?\nSunny in Rome.\nRain in Paris.\nHello.\n"])
        const taken = ["Rome", "Paris", "weather?"].map((one) => `  Taken back: ${one}\n`)
        assert.strictEqual(err, `${taken.join("")}  There is nothing to take back.\n`)
        const verdict = yield* invoke(["trace", "validate", ...runsIn(cwd)])
        assert.strictEqual(verdict.code, 0, verdict.out)
      }),
    timeout
  )

  it.live(
    "has no tools and one phase for all messages with --route chat",
    () =>
      Effect.gen(function* () {
        const { code, cwd, out } = yield* chat({
          turns: ["Hello."],
          input: "hi\n",
          args: ["--json", "--route", "chat"]
        })
        assert.deepStrictEqual([code, JSON.parse(out).text], [0, "Hello."])
        const trace = lines(traceOf(runsIn(cwd)[0]!))
        const provenance = trace.find(({ event_type }) => event_type === "provenance")
        assert.deepStrictEqual(provenance?.data["tools"], [])
        const phases = trace.filter(({ event_type }) => event_type === "phase_started")
        assert.deepStrictEqual(
          phases.map(({ data }) => data["phase"]),
          ["chat"]
        )
      }),
    timeout
  )

  it.live(
    "is cancelled as a run is, and then reads no further",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const turns = [{ text: ["a ", "b ", "c"], millisPerToken: 60_000 }, "Never."]
        writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns }))
        const running = start(["chat", "--script", "script.json"], { cwd, input: "one\ntwo\n" })
        yield* until(running, () => runsIn(cwd).length > 0)
        running.child.kill("SIGINT")
        const { code, err, out } = yield* Effect.promise(() => running.ended)
        assert.deepStrictEqual([code, out], [4, ""])
        assert.include(err, "writ: cancelled (")
        assert.lengthOf(runsIn(cwd), 1)
      }),
    timeout
  )

  it.effect("refuses what cannot be meant before it opens anything", () =>
    Effect.gen(function* () {
      const named = yield* invoke(["chat", "--script", "nothing.yaml"])
      assert.strictEqual(named.code, 2)
      assert.include(named.err, "nothing.yaml")
      const placed = yield* invoke(["chat"], { WRIT_RUN_DIR: "here" })
      assert.deepStrictEqual([placed.code, placed.out], [2, ""])
      assert.include(placed.err, "each message of a chat is a run in a directory of its own")
      const routed = yield* invoke(["chat", "--route", "auto"])
      assert.strictEqual(routed.code, 2)
      assert.include(routed.err, "name task (the default) or chat")
      const unknown = yield* invoke(["chat", "--json", "--tools", "nothing"])
      assert.strictEqual(unknown.code, 2)
      assert.strictEqual(JSON.parse(unknown.out).error.exit_code, 2)
    })
  )
})
