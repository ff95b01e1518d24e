import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory } from "../kit/cli.ts"
import { hasTmux, pane } from "../kit/tmux.ts"

const program = join(import.meta.dirname, "../kit/outboxCli.ts")

describe.skipIf(!hasTmux)("Ctrl-C while a run shows where it stands", () => {
  it.live(
    "takes that line away, and what follows begins where it stood",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const turns = [
          { text: ["<tool_call>", "\n", ..."a call that does not end ".repeat(20).split("")], millisPerToken: 300 }
        ]
        writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns }))
        const terminal = yield* pane(
          [process.execPath, program, "run", "--tools", "calculate", "--script", "script.json", "Write"],
          { cwd }
        )
        yield* terminal.until(/writing, \d+ tokens/)
        terminal.keys("C-c")
        assert.strictEqual(yield* terminal.ended, 4)
        const screen = terminal.screen()
        const at = screen.indexOf("stopping; once more to quit at once")
        assert.strictEqual(screen[at - 1], "turn 1")
        assert.include(screen.slice(at), "cancelled (generation)")
      }),
    240_000
  )
})
