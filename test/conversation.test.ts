/** The entry "effect-writ/conversation", as a program uses it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Advertised, ConversationFile, Filling } from "../src/effects/conversation/index.ts"
import { Builtin } from "../src/index.ts"
import { layerScripted } from "../src/testing.ts"
import { call } from "./kit/script.ts"

const text = `---
model: noop
tools:
  - name: calculate
    description: Calculates.
    input_schema:
      type: object
      properties:
        expression:
          type: string
      required:
        - expression
---
role: user
content: What is 6 times 7?
---
role: assistant
`

const turns = [call("calculate", { expression: "6 * 7" }), "It is 42."]

it.live("a program fills the blank slot of a file with tools of its own choice, and the file holds what happened", () =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true }))
    )
    const path = join(directory, "sum.yaml")
    writeFileSync(path, text)
    const conversation = yield* ConversationFile.load(path)
    const tools = yield* Advertised.registryOf(conversation.meta, yield* Builtin.registry, path)
    const filled = yield* Filling.fill({
      conversation,
      path,
      tools,
      save: (now) => ConversationFile.save(path, now)
    })
    assert.deepStrictEqual([filled.turns, filled.toolCalls, filled.stop?._tag], [2, 1, "Completed"])
    assert.deepStrictEqual(yield* ConversationFile.load(path), filled.conversation)
    assert.include(readFileSync(path, "utf8"), 'content: "42"')
  }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns })))
)
