/** The end of a server, with clients that do their best to put it off. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import type { ScriptedTurn } from "../../../src/engine/ScriptedModel.ts"
import { hello, raw, serving, until, wire } from "../../kit/serve.ts"

describe("a server that is to end", () => {
  it.live("does not wait for a client that takes nothing of its answer, once the run has ended", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const much: ScriptedTurn = { text: Array.from({ length: 50 }, () => "much ".repeat(20_000)) }
        const { server, trace, url } = yield* serving([much], { withTools: false, trace: { content: false } })
        const { say } = yield* wire(url, true)
        say(raw(JSON.stringify({ ...hello, stream: true })))
        yield* until(() => trace(1).includes("run_completed"))
        assert.strictEqual(yield* server.drain(20), 1)
        assert.deepStrictEqual(validateText(trace(1)).violations, [])
      })
    )
  )

  it.live("does not wait for a request whose body is still to come, and begins no run for it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { server, trace, url } = yield* serving(["Hello."])
        const { heard, say } = yield* wire(url)
        say(raw(JSON.stringify(hello)).slice(0, -10))
        yield* Effect.promise(async () => {
          while (
            !(await fetch(`${url}/metrics`).then((response) => response.text())).includes("writ_requests_in_flight 1")
          );
        })
        assert.strictEqual(yield* server.drain(20), 1)
        yield* until(() => heard().includes("shutting_down"))
        assert.match(heard(), /^HTTP\/1\.1 503 /)
        assert.strictEqual(trace(1), "")
      })
    )
  )
})
