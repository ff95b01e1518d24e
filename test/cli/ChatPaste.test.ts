import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ChatPaste } from "../../src/cli/ChatPaste.ts"

const [begin, finish] = ["\u001b[200~", "\u001b[201~"]

/** What a line editor reads of these pieces, and what a line of it stands for. */
const typed = (pieces: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const paste = new ChatPaste(() => {})
    const out: Array<string> = []
    paste.on("data", (text) => out.push(text))
    for (const piece of pieces) paste.write(piece)
    paste.end()
    await new Promise((resolve) => paste.once("end", resolve))
    return { line: out.join(""), whole: paste.expanded(out.join("")) }
  })

describe("what is pasted into a line", () => {
  it.live("is typed as it is when it is one line, without the line end behind it", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* typed([`a ${begin}one two${finish} b\r`])).line, "a one two b\r")
      assert.strictEqual((yield* typed([`${begin}one\n${finish}`])).line, "one")
    })
  )

  it.live("stands there by a name when it has several lines, controls or no end, and is itself in the message", () =>
    Effect.gen(function* () {
      const lines = yield* typed([`x ${begin}one\r\ntwo\rthree\n${finish} y`])
      assert.deepStrictEqual(lines, { line: "x [paste 1: 3 lines] y", whole: "x one\ntwo\nthree y" })
      const control = yield* typed([`${begin}a\tb\u001b[Ac${finish}`])
      assert.deepStrictEqual(control, { line: "[paste 1: 7 characters]", whole: "a\tb\u001b[Ac" })
      const long = yield* typed([`${begin}${"x".repeat(5000)}${finish}`])
      assert.deepStrictEqual(long, { line: "[paste 1: 5000 characters]", whole: "x".repeat(5000) })
    })
  )

  it.live("is the same however it arrives, and one paste inside another's text stays text", () =>
    Effect.gen(function* () {
      const sent = `é${begin}one\n[paste 2: 2 lines]${finish} and ${begin}three\nfour${finish}!\r`
      const whole = yield* typed([sent])
      assert.strictEqual(whole.whole, "éone\n[paste 2: 2 lines] and three\nfour!\r")
      for (let at = 0; at <= sent.length; at++) {
        assert.deepStrictEqual(yield* typed([sent.slice(0, at), sent.slice(at)]), whole, `cut at ${at}`)
      }
    })
  )

  it.live("leaves keys alone, a lone escape included", () =>
    Effect.gen(function* () {
      for (const key of ["\u001b", "\u001b[A", "\u0003", "\u001bb", "[paste 9: 1 line]"]) {
        assert.deepStrictEqual(yield* typed([key]), { line: key, whole: key })
      }
    })
  )
})
