import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { meaning } from "../../../../src/effects/trace/claims/Claim.ts"
import { ofText } from "../../../../src/effects/trace/report/HtmlReport.ts"
import { foreign, hostile, invisible } from "../../../kit/page.ts"
import { play } from "../../../kit/run.ts"
import { call } from "../../../kit/script.ts"
import { good, resumedRuns } from "../../../kit/traces.ts"

const page = (text: string): string => ofText(text).pieces.join("")

/** The part about claims, without tags. */
const claims = (text: string): string => {
  const shown = page(text)
  const part = shown.slice(shown.indexOf('<h3 id="claims">'))
  return part
    .slice(0, part.indexOf("</section>"))
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ")
}

describe("the claims on the report", () => {
  it.effect("that are unsupported stand under the summary with their reason, and in its badges", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("send", { to: "bob" }), "I sent it to Bob."])
      assert.match(page(text), /1 unsupported claim</)
      assert.include(claims(text), "1 claim: 0 supported, 1 unsupported.")
      assert.match(claims(text), /unsupported sent : no call .* send \(call-0-0\) was denied .*I sent it to Bob/)
      assert.include(claims(text), meaning)
    })
  )

  it.effect("that are supported are counted and not listed", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("save", { name: "a.txt", content: "hi" }), "I saved a.txt."])
      assert.include(claims(text), "1 claim: 1 supported, 0 unsupported.")
      assert.notMatch(page(text), /unsupported claim/)
    })
  )

  it.effect("were not checked without content, which the page says", () =>
    Effect.gen(function* () {
      const text = yield* good["artifact, no content"]
      assert.include(claims(text), "were not checked: the run was recorded without content")
      assert.match(page(text), /claims not checked/)
    })
  )

  it.effect("are none, and that proves nothing", () =>
    Effect.gen(function* () {
      assert.include(claims(yield* good["final answer"]), "That proves nothing.")
    })
  )

  it.effect("are of unknown support where the run went on from another", () =>
    Effect.gen(function* () {
      const { second } = yield* Effect.scoped(resumedRuns["resumed in generation"])
      const text = second.replaceAll(/"final_text":"[^"]*"/g, '"final_text":"I saved a.md."')
      assert.match(claims(text), /1 unknown\. Of some it cannot be said, because .* another run stopped/)
    })
  )

  it.effect("are escaped, whatever they hold", () =>
    Effect.gen(function* () {
      for (const evil of hostile) {
        const { text } = yield* play([`I saved ${evil}.md and read https://${evil}/x${evil}. I sent ${evil}`])
        assert.deepStrictEqual(foreign(page(text)), [])
        assert.notMatch(page(text), invisible)
      }
    })
  )
})
