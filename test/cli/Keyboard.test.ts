import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { groupsIn } from "../../src/cli/Keyboard.ts"
import { directory, newestTrace } from "../kit/cli.ts"
import { sent } from "../kit/outbox.ts"
import { call } from "../kit/script.ts"
import { hasTmux, type Pane, pane } from "../kit/tmux.ts"

const program = join(import.meta.dirname, "../kit/outboxCli.ts")
const timeout = 240_000
const question = "Allow this call? [y]es, [n]o, [s]top the run:"

/** The call comes slowly: there is time to type before it is asked about. */
const letter = call("post_letter", { to: "bob", text: "Dear Bob" })
const turns = [{ text: letter.match(/.{1,8}/gs), millisPerToken: 600 }, "It is over."]

/** A run in a directory and a shell of its own, which says its exit code and how it finds the terminal. */
const running = Effect.fnUntraced(function* (settings: { readonly turns?: ReadonlyArray<unknown> } = {}) {
  const cwd = yield* directory
  writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns: settings.turns ?? turns }))
  const run = `'${process.execPath}' '${program}' run --tools post_letter --script script.json Write`
  const shell = `trap : INT; ${run}; echo "code $?"; stty -a | grep -ow -e '-*icanon' -e '-*echo' -e '-*isig' | tr '\\n' ' '; echo over`
  const terminal = yield* pane(["/bin/sh", "-c", shell], { cwd, columns: 100 })
  return { cwd, terminal }
})

/** A shell that somebody uses, with its own jobs. */
const shellIn = Effect.fnUntraced(function* (cwd: string) {
  const shell = ["/bin/bash", "--norc", "--noprofile", "-i"]
  const terminal = yield* pane(shell, { cwd, columns: 100, env: { PS1: "shell$ " } })
  yield* terminal.until("shell$")
  const say = (line: string, until: string | RegExp) => {
    terminal.type(line)
    terminal.keys("Enter")
    return terminal.until(until)
  }
  return { say, terminal }
})

const asFound = /code \d+\n(?:(?:isig|icanon|echo) ){3}over/

const decisions = (cwd: string) =>
  newestTrace(cwd)
    .filter(({ event_type }) => event_type === "approval_decided")
    .map(({ data }) => data["decision"])

/** Typed while the program starts, and while the model writes. */
const typedAhead = Effect.fnUntraced(function* (terminal: Pane, key: string) {
  terminal.type(key)
  terminal.keys("Enter")
  yield* terminal.until(/writing, \d+ tokens/)
  terminal.type(key)
  terminal.keys("Enter")
  // Half a line, whose end comes after the question.
  terminal.type(key)
  yield* terminal.until(question)
})

describe.skipIf(!hasTmux)("what is typed before the question of writ run", () => {
  for (const [ahead, said, decision, letters] of [
    ["y", "n", "deny", 0],
    ["n", "y", "allow", 1]
  ] as const) {
    it.live(
      `${ahead} is no answer to it: only ${said}, typed after it, counts`,
      () =>
        Effect.gen(function* () {
          const { cwd, terminal } = yield* running()
          yield* typedAhead(terminal, ahead)
          terminal.keys("Enter")
          yield* terminal.until("yes, no or stop?")
          assert.deepStrictEqual([sent(cwd).length, decisions(cwd)], [0, []])
          terminal.type(said)
          terminal.keys("Enter")
          yield* terminal.until(asFound)
          assert.deepStrictEqual([sent(cwd).length, decisions(cwd)], [letters, [decision]])
        }),
      timeout
    )
  }
})

describe.skipIf(!hasTmux)("the keyboard while writ run works", () => {
  // It is cancelled long before its end.
  const slowly = [{ text: Array.from({ length: 120 }, (_, at) => `word${at} `), millisPerToken: 1_000 }]

  it.live(
    "shows nothing of what is typed, and Ctrl-C still cancels the run and leaves the terminal as it was",
    () =>
      Effect.gen(function* () {
        const { cwd, terminal } = yield* running({ turns: slowly })
        yield* terminal.until(/writing, \d/)
        terminal.type("ZZZZ")
        yield* terminal.until(/writing, (?:[2-9]|\d\d) tokens/)
        terminal.keys("C-c")
        yield* terminal.until(asFound)
        const screen = terminal.screen().join("\n")
        assert.include(screen, "cancelled (generation)")
        assert.include(screen, "code 4")
        assert.notInclude(screen, "ZZZZ")
        assert.strictEqual(newestTrace(cwd).at(-1)?.event_type, "run_cancelled")
      }),
    timeout
  )

  it.live(
    "ends at once with 130 when Ctrl-C comes twice, and leaves the terminal as it was",
    () =>
      Effect.gen(function* () {
        const { terminal } = yield* running({ turns: [{ text: ["x "], fault: { before: 1, kind: "hang" } }] })
        yield* terminal.until("turn 1")
        terminal.keys("C-c", "C-c")
        yield* terminal.until(asFound)
        assert.match(terminal.screen().join("\n"), /code (?:4|130)\n/)
      }),
    timeout
  )
})

describe.skipIf(!hasTmux)("Ctrl-D instead of an answer", () => {
  it.live(
    "is no, here and for every question that follows, and the questions stay on the screen",
    () =>
      Effect.gen(function* () {
        const { cwd, terminal } = yield* running({ turns: [letter, letter.replace("Bob", "Ann"), "It is over."] })
        yield* terminal.until(question)
        terminal.keys("C-d")
        yield* terminal.until(asFound)
        assert.deepStrictEqual([sent(cwd).length, decisions(cwd)], [0, ["deny", "deny"]])
        assert.lengthOf(
          terminal
            .screen()
            .join("\n")
            .match(/everything asked from now on, is taken as no/g) ?? [],
          1
        )
        // Nothing took their place or went on in their lines.
        assert.lengthOf(
          terminal.screen().filter((line) => line.trimEnd().endsWith(question)),
          2
        )
      }),
    timeout
  )
})

describe.skipIf(!hasTmux || !existsSync("/bin/bash"))("the keyboard of a shell's job", () => {
  it.live(
    "is left alone by writ run in the background, goes back to the shell at Ctrl-Z, and is taken again by fg",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const saying = (text: string) =>
          JSON.stringify({ turns: [{ text: text.match(/\S+\s*/g), millisPerToken: 1_000 }] })
        writeFileSync(join(cwd, "behind.json"), saying("one two three"))
        writeFileSync(join(cwd, "seen.json"), saying("one two three"))
        writeFileSync(join(cwd, "front.json"), saying(`one two three four ${"and more ".repeat(6)}`))
        writeFileSync(join(cwd, "go"), `'${process.execPath}' '${program}' run --tools none --script "$1.json" "$1"`)
        const { say, terminal } = yield* shellIn(cwd)
        yield* say("sh go behind > log 2>&1 & sh go seen &", "task       seen")
        yield* say("echo at $((40 + 2))", "at 42")
        yield* terminal.until(/done in [\s\S]*trace inspect/)
        yield* say("jobs -s; echo none stopped", /^none stopped/m)
        assert.notInclude(terminal.screen().join("\n"), "Stopped")
        yield* say("sh go front", /task +front[\s\S]*one/)
        terminal.keys("C-z")
        yield* terminal.until("Stopped")
        yield* say("stty -a | grep -ow -e icanon -e echo | tr '\\n' '+'", "icanon+echo+")
        yield* say("fg", /fg\n[\s\S]*four/)
        terminal.type("ZZZZ")
        yield* terminal.until(/fg\n[\s\S]*done in [\s\S]*trace inspect/)
        yield* say("echo back", /^back/m)
        assert.notInclude(terminal.screen().join("\n"), "ZZZZ")
      }),
    timeout
  )
})

describe.skipIf(!hasTmux || !existsSync("/bin/bash"))("a question that was open when the shell stopped the run", () => {
  it.live(
    "is shown again when the run goes on, and can be answered",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns: [letter, "It is over."] }))
        writeFileSync(
          join(cwd, "go"),
          `'${process.execPath}' '${program}' run --tools post_letter --script script.json Write`
        )
        const { say, terminal } = yield* shellIn(cwd)
        yield* say("sh go", question)
        terminal.keys("C-z")
        yield* terminal.until("Stopped")
        yield* say("fg", /fg\n[\s\S]*The model wants to call post_letter[\s\S]*Allow this call\?/)
        yield* say("y", /It is over\.[\s\S]*trace inspect/)
        assert.deepStrictEqual([sent(cwd).length, decisions(cwd)], [1, ["allow"]])
        assert.lengthOf(
          terminal.screen().filter((line) => line.includes(question)),
          2
        )
      }),
    timeout
  )
})

describe("the groups of a process", () => {
  it("are read off its status, whatever its program is called", () => {
    assert.deepStrictEqual([...groupsIn("12 (node) S 1 34 34 34816 56 4194304 0\n")], [34, 56])
    assert.deepStrictEqual([...groupsIn("12 (a) b (c) 1 2) R 1 34 34 0 -1 0\n")], [34, -1])
  })
})
