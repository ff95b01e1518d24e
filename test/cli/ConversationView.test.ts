/** What a person sees of many conversations, and which exit code stands for all of them. */
import { assert, it } from "@effect/vitest"
import { failedBefore } from "../../src/cli/ConversationRun.ts"
import { ConversationView, worst } from "../../src/cli/ConversationView.ts"
import type { Screen } from "../../src/cli/Screen.ts"

const screenOf = () => {
  const [lines, drawn]: [Array<string>, Array<string>] = [[], []]
  const same = (text: string) => text
  const paint = { bold: same, dim: same, red: same, green: same, cyan: same, yellow: same }
  const line = (text = "") => void lines.push(text)
  const screen = {
    paint,
    columns: 80,
    write: line,
    line,
    progress: (text) => void drawn.push(text),
    terminal: false,
    directions: false,
    hold: () => {},
    now: () => 0
  } satisfies Screen
  return { screen, lines, drawn }
}

const result = (path: string, code: number) => failedBefore(path, code, code === 0 ? "done" : "failed: no")

it("draws how many are done and who is at work, and takes the bar away at the end", () => {
  const { drawn, lines, screen } = screenOf()
  const view = new ConversationView(screen, 4, false)
  view.began("a.yaml")
  view.began("b.yaml")
  view.ended(result("a.yaml", 0))
  assert.strictEqual(drawn.at(-1), "█████░░░░░░░░░░░░░░░ 1 of 4  b.yaml")
  view.ended(result("b.yaml", 1))
  assert.strictEqual(drawn.at(-1), "██████████░░░░░░░░░░ 2 of 4, 1 not done  ")
  for (const path of ["c.yaml", "d.yaml"]) view.ended(result(path, 0))
  assert.strictEqual(drawn.at(-1), "")
  assert.deepStrictEqual(lines.slice(0, 2), ["✓ a.yaml  done", "✗ b.yaml  failed: no"])
  view.summary(["a", "b", "c", "d"].map((name) => result(name, name === "b" ? 1 : 0)))
  assert.strictEqual(lines.at(-1), "3 of 4 conversations done")
})

it("says nothing when it is to be quiet", () => {
  const { drawn, lines, screen } = screenOf()
  const view = new ConversationView(screen, 2, true)
  view.began("a.yaml")
  view.ended(result("a.yaml", 1))
  view.summary([result("a.yaml", 1), result("b.yaml", 0)])
  assert.deepStrictEqual([lines, drawn], [[], []])
})

it("the worst exit code stands for all", () => {
  const codes = (...all: ReadonlyArray<number>) => worst(all.map((code, at) => result(`${at}`, code)))
  assert.deepStrictEqual(
    [codes(), codes(0, 0), codes(0, 6, 5), codes(5, 3, 4), codes(3, 2), codes(2, 1, 5), codes(1, 7, 2)],
    [0, 0, 5, 3, 2, 1, 7]
  )
})
