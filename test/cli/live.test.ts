/** Long work as it is shown while it goes on, with the model that ships. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, entry, writ } from "../kit/cli.ts"
import { hasTerminals, onTerminal, standing } from "../kit/terminal.ts"

const system = "You are a small local assistant. ".repeat(30)
const args = ["run", "--system", system, "What is 17.5% of 240?"]

const quoted = (text: string): string => `'${text}'`

describe("writ run, while it runs", () => {
  it.live.skipIf(!hasTerminals)(
    "draws loading in percent, reading in tokens, and the tool that runs on one line of a terminal, and leaves none of it",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const sent = yield* onTerminal([process.execPath, entry, ...args].map(quoted).join(" "), { cwd })
        const stages = [
          /starting the engine …/,
          /loading the model, [1-9]\d? % …/,
          /the model is loaded, its context is being made …/,
          /reading, 64 of \d{3,} tokens …/,
          /reading, 128 of \d{3,} tokens …/,
          /the model is thinking …/,
          /calculate is running …/,
          /17\.5% of 240 is 42\./,
          /tokens generated at \d+\.\d tokens\/s/
        ]
        let at = 0
        for (const stage of stages) {
          const found = stage.exec(sent.slice(at))
          assert.isNotNull(found, `${stage} after ${JSON.stringify(sent.slice(0, at).slice(-80))}`)
          at += found?.index ?? 0
        }
        const left = standing(sent)
        assert.includeMembers(
          [...left],
          ["turn 1", `  → calculate expression: "17.5 / 100 * 240"`, "  17.5% of 240 is 42."]
        )
        for (const line of left) assert.notMatch(line, /starting|loading the|reading,|thinking|running|…$/)
      }),
    { timeout: 120_000 }
  )

  it.live(
    "writes plain lines where there is no terminal",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const { code, out } = yield* writ(args, { cwd })
        assert.strictEqual(code, 0)
        assert.notMatch(out, /[\r\u001b]/)
        assert.include(out.split("\n"), "  17.5% of 240 is 42.")
      }),
    { timeout: 120_000 }
  )
})
