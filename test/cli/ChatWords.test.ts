import { assert, describe, it } from "@effect/vitest"
import type { Exchange } from "../../src/cli/ChatSession.ts"
import { goesOn, helpLines, read, toolLines, traceLines, undoneLines } from "../../src/cli/ChatWords.ts"
import { columnsOf } from "../../src/cli/Columns.ts"
import type { Outcome } from "../../src/effects/Outcome.ts"
import type { Registry } from "../../src/tools/Registry.ts"

const plain = (text: string): string => text
const look = (columns: number) => ({
  columns,
  paint: { bold: plain, dim: plain, red: plain, green: plain, cyan: plain, yellow: plain }
})

const tool = (name: string, risk: string, description: string) => ({ name, contract: { risk }, spec: { description } })
const registry = {
  tools: [
    tool("read_file", "read", "Reads a file of the workspace."),
    tool("send", "external", "Schickt\n\u202eeinen Brief.")
  ]
} as unknown as Registry

const exchange = (left: ReadonlyArray<unknown>): Exchange =>
  ({ message: "save \u202eit\nnow", left }) as unknown as Exchange

describe("the words of a chat", () => {
  it("stand alone; everything else is a message, and two slashes before a word are one", () => {
    assert.deepStrictEqual(["/undo", " /HELP ", "/quit", "/exit", "/nothing"].map(read), [
      { _tag: "Word", word: "undo" },
      { _tag: "Word", word: "help" },
      { _tag: "Exit" },
      { _tag: "Exit" },
      { _tag: "Unknown", word: "nothing" }
    ])
    for (const [line, text] of [
      ["/etc/passwd", "/etc/passwd"],
      ["/undo it", "/undo it"],
      ["//undo", "/undo"],
      [" //undo ", " /undo "],
      // What was pasted, a comment for instance, arrives as it is.
      ["// undo\n", "// undo\n"],
      ["//server/share", "//server/share"],
      ["what is /undo", "what is /undo"],
      ["/", "/"],
      ["/constructor", undefined]
    ] as const) {
      assert.deepStrictEqual(
        read(line),
        text === undefined ? { _tag: "Unknown", word: "constructor" } : { _tag: "Message", text }
      )
    }
  })

  it("leave it to a backslash at its end whether a line is the whole message", () => {
    for (const line of ["a\\", "\\", "a b \\"]) assert.isTrue(goesOn(line), line)
    for (const line of ["", "a", "a\\ ", "a\\\\", "a\\b"]) assert.isFalse(goesOn(line), line)
  })

  it("fit the window, and what tools and messages say acts on nothing", () => {
    const undone = undoneLines(
      exchange([
        { tool: "send", arguments: { to: "مرحبا".repeat(40) }, certain: false, artifacts: [], compensation: "unsend" }
      ]),
      look(40)
    )
    const all = [
      ...helpLines(look(40)),
      ...toolLines(registry, look(40)),
      ...traceLines(undefined, look(40)),
      ...undone
    ]
    for (const line of all) {
      assert.isAtMost(columnsOf(line), 40, line)
      assert.notMatch(line, /[\u0000-\u001f\u202a-\u202e]/)
    }
    assert.include(undone.join("\n"), "? may have happened: send")
    assert.include(undone.join("\n"), "can be undone by unsend")
  })

  it("say all they have to say in a narrow window, in more lines", () => {
    const text = (lines: ReadonlyArray<string>) => lines.join(" ").replaceAll(/\s+/g, " ")
    assert.strictEqual(text(helpLines(look(40))), text(helpLines(look(200))))
    assert.include(helpLines(look(40)).join("\n"), "  /undo   takes the last message and its\n          answer back;")
    const stop = { _tag: "Limit", kind: "model_turns" }
    const millis = { total: 1200 }
    const tracePath = "/a/very/long/path/that/is/no/path/any/more/if/it/is/cut/trace.jsonl"
    const last = { stop, millis, toolCalls: 0, turns: 8, usage: { outputTokens: 4 }, tracePath, runId: "run" }
    const lines = traceLines(last as unknown as Outcome, look(40))
    assert.deepStrictEqual(lines.slice(0, 2), [
      "  stopped at the limit of model turns: 8",
      "  turns, 0 calls, 4 tokens, 1.2 s"
    ])
    assert.include(lines, `  ${tracePath}`)
  })

  it("give descriptions of tools lines of their own where there is no room beside the risk, and cut endless ones", () => {
    assert.deepStrictEqual(toolLines(registry, look(80)), [
      "  read_file  read      Reads a file of the workspace.",
      "  send       external  Schickt\\n\\u202eeinen Brief."
    ])
    assert.deepStrictEqual(toolLines(registry, look(30)), [
      "  read_file  read",
      "    Reads a file of the",
      "    workspace.",
      "  send       external",
      "    Schickt\\n\\u202eeinen",
      "    Brief."
    ])
    const endless = { tools: [tool("page", "read", "word ".repeat(1000))] } as unknown as Registry
    for (const columns of [30, 40, 80]) assert.isAtMost(toolLines(endless, look(columns)).length, 4)
    assert.deepStrictEqual(toolLines({ tools: [] } as unknown as Registry, look(80)), ["  The model has no tools."])
  })
})
