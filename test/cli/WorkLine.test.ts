import { assert, describe, it } from "@effect/vitest"
import type { Screen } from "../../src/cli/Screen.ts"
import { WorkLine } from "../../src/cli/WorkLine.ts"

const lineOf = (quiet = false) => {
  const drawn: Array<string> = []
  const state = { inText: false, now: 0 }
  const screen = { progress: (text: string) => void drawn.push(text), now: () => state.now } as Screen
  const work = new WorkLine(screen, { inText: () => state.inText, quiet })
  /** What was drawn since the last time. */
  const since = () => drawn.splice(0)
  return { work, state, since }
}

describe("the line that says what a run is at", () => {
  it("counts the time of one kind of work, whatever its words, and begins anew with another", () => {
    const { since, state, work } = lineOf()
    work.doing("reading", "reading, 1 of 2 tokens")
    state.now = 1_500
    work.doing("reading", "reading, 2 of 2 tokens")
    work.doing("writing", "thinking")
    assert.deepStrictEqual(since(), ["reading, 1 of 2 tokens …", "reading, 2 of 2 tokens … 1 s", "thinking …"])
  })

  it("names the tools that run where there is no other work, until the last has ended", () => {
    const { since, work } = lineOf()
    work.started("call-0-0", "search")
    work.started("call-0-1", "fetch")
    work.finished("call-0-0")
    work.rest()
    work.finished("call-0-1")
    work.rest()
    assert.deepStrictEqual(since(), ["search is running …", "search, fetch are running …", "fetch is running …", ""])
  })

  it("knows of no tool when the run is over", () => {
    const { since, work } = lineOf()
    work.started("call-0-0", "search")
    work.over()
    work.rest()
    work.tick()
    assert.deepStrictEqual(since(), ["search is running …", ""])
  })

  it("is not drawn over open text, and neither taken away; it is there again behind it", () => {
    const { since, state, work } = lineOf()
    state.inText = true
    work.doing("writing", "writing")
    work.tick()
    assert.deepStrictEqual(since(), [])
    state.inText = false
    work.tick()
    assert.deepStrictEqual(since(), ["writing …"])
    state.inText = true
    work.rest()
    assert.deepStrictEqual(since(), [])
  })

  it("says nothing where it is to be quiet", () => {
    const { since, work } = lineOf(true)
    work.doing("writing", "writing")
    work.started("call-0-0", "search")
    work.tick()
    assert.deepStrictEqual(since(), [])
  })
})
