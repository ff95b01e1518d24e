import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import type { ClaimReport } from "../../../../src/effects/trace/claims/Claim.ts"
import { ClaimCheck, checkClaims, mostListed } from "../../../../src/effects/trace/claims/ClaimCheck.ts"
import type { TraceRecord } from "../../../../src/effects/trace/TraceReader.ts"
import { claimsOf, type Labelled, recordsFor } from "../../../kit/claims.ts"
import { hostile } from "../../../kit/page.ts"
import { emberText, recordsOf } from "../../../kit/records.ts"
import { play } from "../../../kit/run.ts"
import { call } from "../../../kit/script.ts"
import { good, resumedRuns } from "../../../kit/traces.ts"
import { countingWork } from "../../../kit/work.ts"

const shown = ({ claims }: ClaimReport): ReadonlyArray<string> =>
  claims.map(({ kind, text, verdict }) => `${kind} ${text}: ${verdict}`)

const changed = (records: ReadonlyArray<TraceRecord>, type: string, data: object): ReadonlyArray<TraceRecord> =>
  records.map((one) => (one.event_type === type ? { ...one, data: { ...one.data, ...data } } : one))

const write = { task: "Write a.md", answer: "I saved a.md." }
const done: Labelled["calls"] = [["write_artifact", { name: "a.md", content: "x" }, "ok", { name: "a.md", bytes: 1 }]]

describe("ClaimCheck on runs of the loop", () => {
  it.effect("a write that was never made is unsupported, and one that was made is supported by its call", () =>
    Effect.gen(function* () {
      const narrated = checkClaims(recordsOf((yield* play(["I saved a.txt."], { task: "save a.txt" })).text))
      assert.deepStrictEqual(shown(narrated), ["writing saved a.txt: unsupported"])
      assert.strictEqual(narrated.claims[0]!.reason, "there is no call that writes")
      const turns = [call("save", { name: "a.txt", content: "hi" }), "I saved a.txt."]
      const made = checkClaims(recordsOf((yield* play(turns)).text))
      assert.deepStrictEqual(shown(made), ["writing saved a.txt: supported"])
      assert.deepStrictEqual(made.claims[0]!.calls, ["call-0-0"])
    })
  )

  it.effect("a message that was denied was not sent", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("send", { to: "bob" }), "I sent the message to Bob."])
      const [claim] = checkClaims(recordsOf(text)).claims
      assert.deepInclude(claim, { kind: "acting", text: "sent", verdict: "unsupported", calls: ["call-0-0"] })
      assert.match(claim!.reason, /send \(call-0-0\) was denied/)
    })
  )

  it.effect("without content it says that it was not made, and lists nothing", () =>
    Effect.gen(function* () {
      const report = checkClaims(recordsOf(yield* good["artifact, no content"]))
      assert.deepStrictEqual([report.status, report.claims], ["not made", []])
      assert.include(report.reason, "without content")
    })
  )

  it.effect("a run without an answer is not checked", () =>
    Effect.gen(function* () {
      for (const name of ["engine failure", "loop", "needs input"] as const) {
        const report = checkClaims(recordsOf(yield* Effect.scoped(good[name])))
        assert.deepStrictEqual([report.status, report.reason], ["not made", "the run ended without an answer"], name)
      }
    })
  )

  it.effect("what may be in another record is unknown, not unsupported", () =>
    Effect.gen(function* () {
      const { second } = yield* Effect.scoped(resumedRuns["resumed in generation"])
      const records = changed(recordsOf(second), "run_completed", { final_text: "I sent it and saved a.md." })
      const report = checkClaims(records)
      assert.deepStrictEqual(new Set(report.claims.map(({ verdict }) => verdict)), new Set(["unknown"]))
      assert.include(report.reason, "another run stopped")
      const later = checkClaims(changed(recordsFor({ ...write, calls: [] }), "run_started", { committed_len: 7 }))
      assert.deepStrictEqual(shown(later), ["writing saved a.md: unknown"])
    })
  )
})

describe("ClaimCheck", () => {
  const fates = ["denied", "refused:unauthorized", "failed:execution_failed", "failed:outcome_unknown", "skipped"]
  for (const fate of fates) {
    it(`a call that was ${fate} bears nothing`, () => {
      const [claim] = claimsOf({ ...write, calls: [["write_artifact", { name: "a.md" }, fate]] })
      assert.strictEqual(claim!.verdict, "unsupported")
      assert.include(claim!.reason, "write_artifact (call-0-0)")
    })
  }

  it("a call that the ledger knew to have succeeded bears a claim", () => {
    const records = recordsFor({ ...write, calls: [["write_artifact", { name: "a.md" }, "skipped"]] })
    const settled = { call: "call-0-0", tool: "write_artifact", outcome: "succeeded", replayed: true }
    const replayed = records.map((one) =>
      one.event_type === "call_skipped" ? { ...one, event_type: "effect_settled", data: settled } : one
    )
    assert.deepStrictEqual(shown(checkClaims(replayed)), ["writing saved a.md: supported"])
  })

  it("reads the predecessor's traces", () => {
    const report = checkClaims(recordsOf(emberText))
    assert.deepStrictEqual(shown(report), ["number 42: supported"])
    const said = recordsOf(emberText.replaceAll("The answer is 42.", "I saved 43 rows to rows.csv."))
    assert.deepStrictEqual(shown(checkClaims(said)), ["writing saved rows.csv: unsupported", "number 43: unsupported"])
  })

  it("is not made on the beginning of a run, on several runs, or on an answer that is only a digest", () => {
    const records = recordsFor({ ...write, calls: done })
    const reasons = [
      records.slice(0, -1),
      [...records, { ...records[0]!, run_id: "run-2" }],
      changed(records, "run_completed", { final_text: { bytes: 3, hmac: "0".repeat(64) } })
    ].map((one) => checkClaims(one))
    assert.deepStrictEqual(new Set(reasons.map(({ status }) => status)), new Set(["not made"]))
    assert.strictEqual(new Set(reasons.map(({ reason }) => reason)).size, 3)
  })

  it("a line that could not be read may have held what is missing", () => {
    const check = new ClaimCheck()
    recordsFor({ ...write, calls: [] }).forEach(check.see)
    check.unreadable()
    const report = check.end()
    assert.deepStrictEqual(shown(report), ["writing saved a.md: unknown"])
    assert.include(report.reason, "cannot be read")
  })

  it("lists the first claims of very many and counts all", () => {
    const answer = "I saved a.md. ".repeat(2 * mostListed)
    const { claims, counts } = checkClaims(recordsFor({ task: "", calls: [], answer }))
    assert.deepStrictEqual([claims.length, counts.unsupported], [mostListed, 2 * mostListed])
  })

  it("never fails and never says more than it lists, whatever a trace and an answer hold", () => {
    const phrases = [
      "I saved ",
      "a.md",
      "1,234.5 %",
      '"',
      "`",
      "\n- ",
      "was sent ",
      "and ",
      "according to ",
      "twenty-",
      "https://"
    ]
    const text = fc.array(
      fc.oneof(fc.constantFrom(...phrases, ...hostile), fc.string({ unit: "binary", maxLength: 9 })),
      {
        maxLength: 30
      }
    )
    const value = fc.jsonValue({ maxDepth: 3 })
    const types = recordsFor({ ...write, calls: [...done, ["x", {}, "denied"], ["y", {}, "skipped"]] })
    fc.assert(
      fc.property(text, value, fc.nat(types.length), fc.string(), (parts, odd, at, field) => {
        const answer = parts.join("")
        const records = changed(types, "run_completed", { final_text: answer }).map((one, index) =>
          index === at ? { ...one, data: { ...one.data, [field]: odd, arguments: odd, payload: odd, tools: odd } } : one
        )
        const { claims, counts } = checkClaims(records)
        assert.strictEqual(claims.length, counts.supported + counts.unsupported + counts.unknown)
        for (const claim of claims) assert.isTrue(claim.at >= 0 && claim.at < answer.length)
        assert.isArray(
          checkClaims(records.map((one) => ({ ...one, data: { call: odd, tool: odd, [field]: odd } }) as TraceRecord))
            .claims
        )
      }),
      { numRuns: 300 }
    )
  })

  const shapes: Readonly<Record<string, (size: number) => string>> = {
    claims: (size) => "I saved a.md and ".repeat(size / 17),
    numbers: (size) => "1,234.5 ".repeat(size / 8),
    "a number without end": (size) => "1,1".repeat(size / 3),
    "a word without end": (size) => "a".repeat(size),
    dots: (size) => "a.".repeat(size / 2),
    quotes: (size) => `"'\`“`.repeat(size / 4),
    brackets: (size) => "[".repeat(size),
    items: (size) => "\n- ".repeat(size / 3),
    fences: (size) => "```\n".repeat(size / 4),
    mail: (size) => "a@".repeat(size / 2),
    paths: (size) => "/a.md".repeat(size / 5),
    questions: (size) => "?a".repeat(size / 2),
    colons: (size) => ":/".repeat(size / 2),
    conjunctions: (size) => "and not ".repeat(size / 8),
    sources: (size) => "according to ".repeat(size / 13),
    halves: (size) => "\ud800".repeat(size)
  }
  for (const [name, shape] of Object.entries(shapes)) {
    it(`ten times the text costs twelve times the work at most: ${name}`, () => {
      const work = (size: number) => {
        const text = shape(size)
        const calls: Labelled["calls"] = [["read_text_file", { path: text }, "ok", { text }]]
        const records = recordsFor({ task: text, calls, answer: text })
        return countingWork(() => checkClaims(records))
      }
      assert.isAtMost(work(40_000) / work(4_000), 12)
    })
  }
})
