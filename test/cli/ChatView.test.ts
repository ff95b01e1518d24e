import { assert, describe, it } from "@effect/vitest"
import { ChatView } from "../../src/cli/ChatView.ts"
import type { Screen } from "../../src/cli/Screen.ts"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import type { Outcome } from "../../src/effects/Outcome.ts"
import type { Stop } from "../../src/effects/State.ts"

const plain = (text: string): string => text

const viewOf = (columns: number) => {
  let said = ""
  const write = (text: string) => {
    said += text
  }
  const screen: Screen = {
    paint: { bold: plain, dim: plain, red: plain, green: plain, cyan: plain, yellow: plain },
    terminal: true,
    directions: false,
    columns,
    write,
    line: (text = "") => write(`${text}\n`),
    progress: () => {},
    hold: () => {},
    now: () => 0
  }
  return { view: new ChatView(screen, { quiet: false, directions: false }), write, said: () => said }
}

const text = (said: string): AgentEvent => ({ _tag: "Text", turn: 0, text: said })
const ended = (stop: Stop): Outcome =>
  ({ stop, millis: { total: 10 }, usage: { outputTokens: 1 } }) as unknown as Outcome

describe("a chat on the screen", () => {
  it("never cuts the path of what was written off: where there is no room it has a line of its own", () => {
    const path = "/a/directory/with/a/long/name/.writ/artifacts/note.txt"
    const artifact = { artifactId: "a", bytes: 4, mediaType: "text/plain", name: "note.txt", path, sha256: "0" }
    const shown = (columns: number): string => {
      const { said, view } = viewOf(columns)
      view.event({ _tag: "ArtifactWritten", callId: "c", artifact } as unknown as AgentEvent)
      return said()
    }
    assert.strictEqual(shown(40), `  + 4 bytes:\n    ${path}\n`)
    assert.strictEqual(shown(100), `  + 4 bytes: ${path}\n`)
  })

  it("shows nothing of an answer that was stopped, not even the word that was held back, and all of the next", () => {
    const { said, view, write } = viewOf(40)
    for (const piece of ["One two", " thr"]) view.event(text(piece))
    view.stopping()
    write("\nstopping\n")
    for (const piece of ["ee four", " five "]) view.event(text(piece))
    view.ended(ended({ _tag: "Cancelled", at: "generation" }))
    assert.strictEqual(said(), "One two\nstopping\ncancelled (generation)\n  the message stands; /undo takes it back\n")
    view.event(text("Next one. "))
    view.ended(ended({ _tag: "Completed", text: "Next one." }))
    assert.match(said(), /takes it back\nNext one\.\n$/)
  })

  it("says so where an answer was whole before it could be stopped", () => {
    const { said, view } = viewOf(80)
    view.stopping()
    view.event(text("Whole."))
    view.ended(ended({ _tag: "Completed", text: "Whole." }))
    assert.strictEqual(said(), "  (too late: the answer was whole, and stands; /undo takes it back)\n")
  })
})
