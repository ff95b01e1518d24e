/** What docs/conversations.md shows is what the code does. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import * as Assembly from "../../../src/effects/conversation/assemble/Assembly.ts"
import * as Matrix from "../../../src/effects/conversation/assemble/Matrix.ts"
import * as ConversationText from "../../../src/effects/conversation/ConversationText.ts"
import { read } from "../../../src/effects/conversation/YamlDocuments.ts"

const root = join(import.meta.dirname, "../../..")

const page = readFileSync(join(root, "docs/conversations.md"), "utf8")

const blocks = [...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text]) => text!)

describe("docs/conversations.md", () => {
  it("shows a conversation that is read, and as it is written", () => {
    const conversation = Result.getOrThrow(ConversationText.parse(blocks[0]!))
    expect(conversation.session.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"])
    expect(ConversationText.emit(conversation)).toBe(blocks[0])
  })

  it("shows an assembly that gives the four conversations it says", () => {
    const assembly = Assembly.decode(
      read({ text: blocks.find((text) => text.includes("matrix:"))!, line: 1 }),
      "claims"
    )
    expect(Matrix.casesOf(assembly, assembly.axes).map(({ name }) => name)).toEqual([
      "missing-fields-small",
      "missing-fields-large",
      "over-limit-small",
      "over-limit-large"
    ])
  })

  it("explains errors in the words they have", () => {
    const table = page.slice(page.indexOf("## When something is wrong")).split(/^## /m)[1]!
    const said = [...table.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`([^`]+)`/g)].map(([, words]) => words!)
    )
    const source = globSync("src/effects/conversation/**/*.ts", { cwd: root })
      .map((file) => readFileSync(join(root, file), "utf8"))
      .join("\n")
      // As the text of a message has it: what is put in is any text.
      .replaceAll(/\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}/g, "…")
    expect(said.length).toBeGreaterThan(25)
    const missing = said.filter((words) => words.split("…").some((part) => !source.includes(part.trim())))
    expect(missing).toEqual([])
  })
})
