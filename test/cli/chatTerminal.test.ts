import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, entry, runsIn, traceOf, writ } from "../kit/cli.ts"
import { call, lines } from "../kit/script.ts"
import { hasTmux, type Pane, type PaneOptions, pane } from "../kit/tmux.ts"

/** Words as tokens, so that they come one after another. */
const words = (text: string) => text.match(/\S+\s*/g) ?? []

interface Setting extends Partial<PaneOptions> {
  readonly turns: ReadonlyArray<unknown>
  readonly args?: ReadonlyArray<string>
  readonly tools?: Readonly<Record<string, unknown>>
}

/** A chat in a directory of its own, at its first prompt. */
const chatting = Effect.fnUntraced(function* ({ args = [], tools, turns, ...options }: Setting) {
  const cwd = yield* directory
  writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns, name: "script" }))
  for (const [name, tool] of Object.entries(tools ?? {})) writeFileSync(join(cwd, name), JSON.stringify(tool))
  const command = [process.execPath, entry, "chat", "--script", "script.json", ...args]
  const terminal = yield* pane(command, { cwd, ...options })
  yield* terminal.until(/^>/m)
  return { cwd, terminal }
})

/** Sends one message, and waits for what it comes to. */
const say = (terminal: Pane, message: string, until: string | RegExp) => {
  terminal.type(message)
  terminal.keys("Enter")
  return terminal.until(until)
}

/** The records of the chat's runs, in the order they began. */
const traces = (cwd: string) =>
  runsIn(cwd)
    .map((run) => lines(traceOf(run)))
    .sort(([a], [b]) => Number(a?.ts_epoch_ms) - Number(b?.ts_epoch_ms))

const firsts = (cwd: string) => traces(cwd).map(([first]) => first!)

const file = (command: string, contract: object) => ({
  description: "A tool of a test.",
  parameters: { type: "object", properties: { text: { type: "string", description: "A text" } } },
  command: ["/bin/sh", "-c", command],
  contract
})

const nap = file("touch started; sleep 600", { risk: "read", touches: [] })
const send = file("echo '\"sent\"'", {
  risk: "external",
  ledger: "external",
  retry: "safe",
  reversible: false,
  evidence: { source: "sensor", describes: "the other side" },
  post: "result"
})
const ownTools = ["--tools", "nap,send", "--tools-dir", "."]

const slow = { text: words("one two three four five six seven eight nine ten"), millisPerToken: 3_000 }

const timeout = 240_000

/** Lines from the last one that begins with a prompt and this on. */
const since = (terminal: Pane, prompt: string): ReadonlyArray<string> => {
  const lines = terminal.screen()
  return lines.slice(lines.findLastIndex((line) => line.startsWith(`> ${prompt}`)))
}

describe.skipIf(!hasTmux)("writ chat at a terminal", () => {
  it.live(
    "asks for approvals as run does, cancels tool, question and model by Ctrl-C, and goes on after each",
    () =>
      Effect.gen(function* () {
        const { cwd, terminal } = yield* chatting({
          turns: [
            call("nap", {}),
            call("send", { text: "one" }),
            call("send", { text: "مرحبا" }),
            "It was sent.",
            slow,
            "Last."
          ],
          tools: { "nap.tool.json": nap, "send.tool.json": send },
          args: ownTools
        })
        yield* say(terminal, "wait", "nap is running")
        terminal.keys("C-c")
        yield* terminal.until("cancelled (tool)")
        yield* terminal.until("/undo takes it back")
        yield* say(terminal, "send it", "Allow this call?")
        // What was typed before the question would be no answer to it, and this is none either.
        yield* say(terminal, "perhaps", "yes, no or stop?")
        terminal.keys("C-c")
        yield* terminal.until("cancelled (awaiting-approval)")
        yield* say(terminal, "send again", /send again[\s\S]*مرحبا[\s\S]*Allow this call\?/)
        yield* say(terminal, "y", "It was sent.")
        yield* say(terminal, "slowly", /^one/m)
        terminal.keys("C-c")
        yield* terminal.until("cancelled (generation)")
        yield* say(terminal, "and now", "Last.")
        terminal.keys("C-d")
        assert.strictEqual(yield* terminal.ended, 0)
        const ends = traces(cwd).map((trace) => trace.at(-1)?.event_type)
        const cancelled = "run_cancelled"
        assert.deepStrictEqual(ends, [cancelled, cancelled, "run_completed", cancelled, "run_completed"])
        // Calls have the same names in every run; each is on the screen before it is asked about.
        for (const which of ["one", "مرحبا"]) {
          const asked = new RegExp(`→ send text: "${which}"\n\n  \\? The model wants to call send`)
          assert.match(terminal.screen().join("\n"), asked)
        }
      }),
    timeout
  )

  it.live(
    "ends at once with 130 when Ctrl-C comes twice, and leaves at an empty prompt, after taking back a half line",
    () =>
      Effect.gen(function* () {
        const stuck = { text: ["x"], fault: { before: 1, kind: "hang" } }
        const tools = {
          "nap.tool.json": file("trap '' TERM INT; touch started; sleep 600", { risk: "read", touches: [] })
        }
        const { terminal } = yield* chatting({
          turns: [call("nap", {}), stuck],
          tools,
          args: ["--tools", "nap", "--tools-dir", "."]
        })
        yield* say(terminal, "wait", "nap is running")
        terminal.keys("C-c", "C-c")
        const code = yield* terminal.ended
        assert.include([0, 130], code)
        if (code === 0) assert.include(terminal.screen().join("\n"), "cancelled (tool)")
        const other = yield* chatting({ turns: ["Hello."] })
        other.terminal.type("half a line")
        yield* other.terminal.until("half a line")
        other.terminal.keys("C-c")
        yield* other.terminal.until(/half a line\^C\n>$/)
        other.terminal.keys("C-c")
        yield* other.terminal.until(/\^C\n>\n {2}Ctrl-C once more leaves\n>$/)
        // Who goes on talking has not left.
        yield* say(other.terminal, "hello", /Hello\.[\s\S]*\n>$/)
        other.terminal.keys("C-c")
        yield* other.terminal.until(/Hello\.[\s\S]*Ctrl-C once more leaves\n>$/)
        other.terminal.keys("C-c")
        assert.strictEqual(yield* other.terminal.ended, 0)
      }),
    timeout
  )

  it.live(
    "shows nothing of an answer after Ctrl-C, which leaves nothing but the answer, however late it comes",
    () =>
      Effect.gen(function* () {
        const long = words("one two three four five six seven eight nine ten eleven twelve")
        const { cwd, terminal } = yield* chatting({ turns: [{ text: long, millisPerToken: 500 }, "Whole.", "Last."] })
        yield* say(terminal, "slowly", /^one two/m)
        terminal.keys("C-c")
        yield* terminal.until("/undo takes it back")
        const stopped = since(terminal, "slowly")
        const at = stopped.indexOf("stopping; once more to quit at once")
        assert.match(stopped[at - 1] ?? "", /^one two/)
        assert.strictEqual(stopped[at + 1], "cancelled (generation)")
        yield* say(terminal, "now", "Whole.")
        terminal.keys("C-c")
        yield* terminal.until(/Whole\.[\s\S]*once more/)
        yield* say(terminal, "and then", "Last.")
        terminal.keys("C-d")
        assert.strictEqual(yield* terminal.ended, 0)
        assert.strictEqual(traces(cwd).length, 3)
      }),
    timeout
  )

  it.live(
    "keeps what is typed while the engine starts for the first prompt, and shows none of it before",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const terminal = yield* pane([process.execPath, entry, "chat"], { cwd })
        yield* terminal.until("starting the engine")
        terminal.type("typed early")
        yield* terminal.until(/^> typed early$/m)
        assert.notMatch(terminal.sent(), /(?:engine|model|context)[^\r\n\u001b]*typed/)
        assert.strictEqual(terminal.screen().join("\n").split("typed early").length, 2)
        terminal.keys("C-c")
        yield* terminal.until(/typed early\^C\n>$/)
        terminal.keys("C-d")
        assert.strictEqual(yield* terminal.ended, 0)
        const other = yield* pane(
          ["/bin/sh", "-c", `trap : INT; '${process.execPath}' '${entry}' chat; echo "code $?"; stty -a`],
          { cwd }
        )
        yield* other.until("starting the engine")
        other.keys("C-c")
        yield* other.until(/code 4[\s\S]* isig icanon [\s\S]* echo /)
      }),
    timeout
  )

  it.live(
    "takes a paste of several lines as one message, a backslash as a further line, and knows the lines before",
    () =>
      Effect.gen(function* () {
        const { cwd, terminal } = yield* chatting({
          turns: ["First.", "Second.", "Third."],
          args: ["--trace-content"]
        })
        terminal.type("Read this: ")
        terminal.paste("line one\nline \u001b[31mtwo\n\tthree\n")
        yield* terminal.until("[paste 1: 3 lines]")
        yield* say(terminal, " please", "First.")
        yield* say(terminal, "going\\", /^…/m)
        yield* say(terminal, "on", "Second.")
        terminal.keys("Up", "Up", "Up")
        yield* terminal.until(/^> Read this: \[paste 1: 3 lines\] please$(?![\s\S]*^> Read this)/m)
        terminal.keys("Enter")
        yield* terminal.until("Third.")
        terminal.type("/exit")
        terminal.keys("Enter")
        assert.strictEqual(yield* terminal.ended, 0)
        const tasks = firsts(cwd).map(({ data }) => data["task"])
        const pasted = "Read this: line one\nline \u001b[31mtwo\n\tthree please"
        assert.deepStrictEqual(tasks, [pasted, "going\non", pasted])
        assert.notInclude(terminal.sent(), "\u001b[31m")
        // The terminal marks pastes for this program only.
        assert.include(terminal.sent(), "\u001b[?2004l")
      }),
    timeout
  )

  it.live(
    "takes an exchange back and says which of its effects stay, and a new conversation remembers nothing",
    () =>
      Effect.gen(function* () {
        const { cwd, terminal } = yield* chatting({
          turns: [call("write_artifact", { name: "note.txt", content: "kept" }), "Saved.", "Hello.", "Fresh."],
          columns: 120,
          args: ["--trace-content"]
        })
        yield* say(terminal, "save a note", "Saved.")
        yield* say(terminal, "/undo", "stays done")
        const lines = since(terminal, "/undo")
        assert.deepStrictEqual(lines.slice(1, 4), [
          "  Taken back: save a note",
          "  What was done stays done:",
          `  • write_artifact name: "note.txt"  content: "kept"`
        ])
        const path = join(cwd, lines[4]!.trim())
        assert.isTrue(existsSync(path))
        assert.strictEqual(readFileSync(path, "utf8"), "kept")
        yield* say(terminal, "/undo", "There is nothing to take back.")
        yield* say(terminal, "hello", /^Hello\./m)
        yield* say(terminal, "/new", "The model remembers nothing")
        yield* say(terminal, "again", "Fresh.")
        yield* say(terminal, "/trace", /done: 1 turn, 0 calls/)
        yield* say(terminal, "/tools", /write_artifact +local-write +Write a text file\./)
        yield* say(terminal, "/help", "/undo   takes the last message")
        yield* say(terminal, "/nothing", "There is no /nothing")
        terminal.keys("C-d")
        yield* terminal.ended
        const starts = firsts(cwd).map(({ data }) => data["committed_len"])
        // Each of the three began where nothing was before it.
        assert.deepStrictEqual(starts, [0, 0, 0])
      }),
    timeout
  )

  it.live(
    "says which way paragraphs read, lets nothing of the model turn text around, and never shows reasoning",
    () =>
      Effect.gen(function* () {
        const arabic = "مرحبا بالعالم، هذا جواب طويل بالعربية مع OpenAI و42 رقما \u202eevil\u202c."
        const { terminal } = yield* chatting({
          turns: [
            { text: words(arabic) },
            {
              text: ["<think>", ...words("a secret thought of the model"), "</think>", "\n\nAnswer."],
              millisPerToken: 300
            }
          ],
          columns: 40,
          args: ["--codec", "qwen3"]
        })
        yield* say(terminal, "مرحبا", "evil")
        yield* terminal.until(/evil[\s\S]*^>/m)
        assert.deepStrictEqual(since(terminal, "مرحبا").slice(1, 4), [
          "مرحبا بالعالم، هذا جواب طويل بالعربية مع",
          "OpenAI و42 رقما \\u202eevil\\u202c.",
          ""
        ])
        assert.include(terminal.sent(), "\u001b[2 kمرحبا بالعالم")
        assert.include(terminal.sent(), "\u001b[0 k")
        assert.notMatch(terminal.sent(), /[\u202a-\u202e\u2066-\u2069]/)
        yield* say(terminal, "think", /thinking, \d+ tokens? …/)
        yield* terminal.until(/^Answer\./m)
        terminal.keys("C-d")
        yield* terminal.ended
        assert.notInclude(terminal.sent(), "secret")
      }),
    timeout
  )

  it.live(
    "goes by the width of the window as it is, and keeps what is typed while the model writes for the next message",
    () =>
      Effect.gen(function* () {
        const long = words("aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee fffffffff ggggggggg hhhhhhhhh.")
        const { terminal } = yield* chatting({
          turns: [{ text: long }, { text: long, millisPerToken: 200 }, "Third."],
          columns: 100
        })
        yield* say(terminal, "wide", "hhhhhhhhh.")
        assert.include(since(terminal, "wide")[1], "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee fffffffff")
        terminal.resize(44)
        yield* say(terminal, "narrow", /narrow\naaaaaaaaa/)
        terminal.type("typed meanwhile")
        yield* terminal.until(/narrow[\s\S]*hhhhhhhhh\.[\s\S]*^> typed meanwhile$/m)
        assert.deepStrictEqual(since(terminal, "narrow").slice(1, 3), [
          "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd",
          "eeeeeeeee fffffffff ggggggggg hhhhhhhhh."
        ])
        terminal.keys("Enter")
        yield* terminal.until("Third.")
      }),
    timeout
  )

  it.live(
    "talks with the model that ships, whose calls and answers are on the screen",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const terminal = yield* pane([process.execPath, entry, "chat"], { cwd })
        yield* terminal.until(/^>/m)
        yield* say(terminal, "What is 17.5% of 240?", "17.5% of 240 is 42.")
        assert.include(since(terminal, "What is"), `  → calculate expression: "17.5 / 100 * 240"`)
        yield* terminal.until(/is 42\.[\s\S]*^>$/m)
        yield* say(terminal, "/undo", "Taken back: What is 17.5% of 240?")
        yield* say(terminal, "What is 17.5% of 240?", /Taken back[\s\S]*17\.5% of 240 is 42\./)
        terminal.keys("C-d")
        assert.strictEqual(yield* terminal.ended, 0)
        const verdict = yield* writ(["trace", "validate", ...runsIn(cwd)], { cwd })
        assert.strictEqual(verdict.code, 0, verdict.out)
      }),
    timeout
  )

  it.live(
    "shows an answer while it is written, wrapped at words in a narrow window, and without colours where none are wanted",
    () =>
      Effect.gen(function* () {
        const first = "A long answer that is wrapped at its words in a narrow window, "
        const { terminal } = yield* chatting({
          turns: [{ text: [...words(first), ...words("and ends.")], millisPerToken: 400 }],
          columns: 40,
          env: { NO_COLOR: "1" }
        })
        yield* say(terminal, "Go on", "A long answer")
        // The rest of it has yet to come.
        assert.notInclude(terminal.screen().join("\n"), "and ends.")
        yield* terminal.until("and ends.")
        yield* terminal.until(/ends\.[\s\S]*^>/m)
        assert.deepStrictEqual(since(terminal, "Go on").slice(1, 4), [
          "A long answer that is wrapped at its",
          "words in a narrow window, and ends.",
          terminal.screen().find((line) => /^ {2}\(\d+ tokens, /.test(line)) ?? ""
        ])
        terminal.keys("C-d")
        assert.strictEqual(yield* terminal.ended, 0)
        assert.notMatch(terminal.sent(), /\u001b\[(?:1|2|3[0-9])m/)
      }),
    timeout
  )

  it.live(
    "leaves answers where they stand in a narrow window, however many rows a question took",
    () =>
      Effect.gen(function* () {
        const { terminal } = yield* chatting({
          turns: [call("send", { text: "one" }), "It was sent.", "Last."],
          tools: { "nap.tool.json": nap, "send.tool.json": send },
          args: ownTools,
          columns: 20
        })
        yield* say(terminal, "go", /Allow this call\?/)
        yield* say(terminal, "neither this nor that", /yes, no or stop\?/)
        yield* say(terminal, "y", /It was sent\.[\s\S]*\n>$/)
        yield* say(terminal, "more", /Last\.[\s\S]*\n>$/)
        assert.match(terminal.screen().join("\n"), /It was sent\.\n(?: {2}\(.*\n)?\n> more\nLast\.\n/)
        for (const line of terminal.screen()) assert.isAtMost(line.length, 20)
      }),
    timeout
  )

  it.live(
    "gives the shell its terminal on Ctrl-Z, and goes on where it was with the next fg",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns: ["First.", "Second."], name: "script" }))
        const terminal = yield* pane(["bash", "--norc", "--noprofile", "-i"], { cwd, env: { PS1: "shell$ " } })
        yield* terminal.until("shell$")
        yield* say(terminal, `'${process.execPath}' '${entry}' chat --script script.json`, /^>$/m)
        terminal.type("half a li")
        yield* terminal.until("> half a li")
        terminal.keys("C-z")
        yield* terminal.until(/Stopped[\s\S]*shell\$$/)
        yield* say(terminal, "stty -a | grep -o ' icanon'", /^ icanon$/m)
        yield* say(terminal, "fg", /shell\$ fg[\s\S]*> half a li$/)
        terminal.type("ne, and ")
        // Pastes are marked again.
        terminal.paste("one\ntwo\n")
        yield* terminal.until("> half a line, and [paste 1: 2 lines]")
        yield* say(terminal, "", "First.")
        yield* terminal.until(/First\.\n\n>$/)
        terminal.keys("C-d")
        yield* terminal.until(/shell\$$/)
        yield* say(terminal, "exit", /exit$/)
        yield* terminal.ended
        assert.deepStrictEqual(
          traces(cwd).map((trace) => trace.at(-1)?.event_type),
          ["run_completed"]
        )
      }),
    timeout
  )

  it.live(
    "cancels what runs when the terminal is closed, closes the record, and leaves nothing behind",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const started = file("echo $$ > pid; sleep 600", { risk: "read", touches: [] })
        writeFileSync(join(cwd, "nap.tool.json"), JSON.stringify(started))
        writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns: [call("nap", {}), "Never."] }))
        const args = ["chat", "--script", "script.json", "--tools", "nap", "--tools-dir", "."]
        // The terminal goes with this scope.
        yield* Effect.scoped(
          Effect.gen(function* () {
            const terminal = yield* pane([process.execPath, entry, ...args], { cwd })
            yield* terminal.until(/^>/m)
            yield* say(terminal, "wait", "nap is running")
            yield* eventually(() => existsSync(join(cwd, "pid")) && readFileSync(join(cwd, "pid"), "utf8") !== "")
          })
        )
        const child = Number(readFileSync(join(cwd, "pid"), "utf8"))
        yield* eventually(() => traces(cwd)[0]?.at(-1)?.event_type === "run_cancelled")
        yield* eventually(() => !existsSync(`/proc/${child}`))
        const verdict = yield* writ(["trace", "validate", ...runsIn(cwd)], { cwd })
        assert.strictEqual(verdict.code, 0, verdict.out)
      }),
    timeout
  )
})

/** Waits for something that is bound to be so. */
const eventually = (is: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (is() ? Effect.void : Effect.andThen(Effect.sleep(40), eventually(is))))
