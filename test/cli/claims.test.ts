import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { meaning } from "../../src/effects/trace/claims/Claim.ts"
import { directory, invoke } from "../kit/cli.ts"
import { play } from "../kit/run.ts"
import { call } from "../kit/script.ts"
import { good } from "../kit/traces.ts"

/** A run that was denied what it says it did. */
const denied = Effect.map(
  play([call("send", { to: "bob" }), "I sent the message to Bob and saved notes.txt\u001b[2J. It took 77 days."]),
  ({ text }) => text
)

const saved = Effect.fnUntraced(function* (text: string) {
  const path = join(yield* directory, "trace.jsonl")
  writeFileSync(path, text)
  return path
})

describe("claims on the command line", () => {
  it.effect("inspect lists what is unsupported, says why, and what that means", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["trace", "inspect", "--no-color", yield* saved(yield* denied)])
      assert.strictEqual(code, 0)
      assert.match(out, /^claims +3 claims: 0 supported, 3 unsupported$/m)
      assert.match(out, /^ +unsupported: sent: .*send \(call-0-0\) was denied \("I sent the message/m)
      assert.match(out, /^ +unsupported: saved notes.txt: /m)
      assert.match(out, /^ +unsupported: 77: /m)
      assert.include(out, meaning)
      assert.notInclude(out, "\u001b")
    })
  )

  it.effect("inspect has the same in JSON, each claim with its place", () =>
    Effect.gen(function* () {
      const { out } = yield* invoke(["trace", "inspect", "--json", yield* saved(yield* denied)])
      const { claims } = JSON.parse(out)
      assert.deepInclude(claims, {
        status: "made",
        reason: "",
        meaning,
        counts: { supported: 0, unsupported: 3, unknown: 0 }
      })
      assert.deepInclude(claims.listed[0], {
        kind: "acting",
        text: "sent",
        at: 2,
        verdict: "unsupported",
        calls: ["call-0-0"]
      })
    })
  )

  it.effect("without content inspect and explain say that nothing was checked", () =>
    Effect.gen(function* () {
      const path = yield* saved(yield* good["artifact, no content"])
      const said = "not checked: the run was recorded without content, so its answer cannot be read"
      assert.include((yield* invoke(["trace", "inspect", "--no-color", path])).out, `claims    ${said}`)
      assert.include((yield* invoke(["trace", "explain", "--no-color", path, "answer"])).out, `the answer: ${said}`)
      const { claims } = JSON.parse((yield* invoke(["trace", "inspect", "--json", path])).out)
      assert.deepStrictEqual([claims.status, claims.listed], ["not_made", []])
    })
  )

  it.effect("an answer that claims nothing is not called proved", () =>
    Effect.gen(function* () {
      const { out } = yield* invoke(["trace", "inspect", "--no-color", yield* saved(yield* good["final answer"])])
      assert.match(out, /^claims +none that the rules know, which proves nothing$/m)
    })
  )

  it.effect("explain goes through the answer's claims, and through those of one call", () =>
    Effect.gen(function* () {
      const path = yield* saved(yield* denied)
      const answer = yield* invoke(["trace", "explain", "--no-color", path, "answer"])
      assert.match(answer.out, /^the answer: 3 claims: 0 supported, 3 unsupported$/m)
      assert.match(answer.out, /^unsupported: saved /m)
      const one = yield* invoke(["trace", "explain", "--no-color", path, "call-0-0"])
      assert.match(one.out, /The answer claims:\n {2}unsupported: sent: /)
      const json = JSON.parse((yield* invoke(["trace", "explain", "--json", path, "1"])).out)
      assert.deepStrictEqual(
        json.claims.map(({ text }: { readonly text: string }) => text),
        ["sent"]
      )
      const all = JSON.parse((yield* invoke(["trace", "explain", "--json", path, "answer"])).out)
      assert.strictEqual(all.claims.listed.length, 3)
    })
  )

  it.effect("of a run without calls the answer can be explained too", () =>
    Effect.gen(function* () {
      const { text } = yield* play(["I saved it to a.md."])
      const { code, out } = yield* invoke(["trace", "explain", "--no-color", yield* saved(text), "answer"])
      assert.strictEqual(code, 0)
      assert.include(out, "unsupported: saved a.md: there is no call that writes")
    })
  )
})
