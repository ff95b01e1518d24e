import { assert, describe, it } from "@effect/vitest"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as Screen from "../../src/cli/Screen.ts"

const screenOn = (terminal: boolean, columns = 80) => {
  let written = ""
  const out: Screen.Out = { isTTY: terminal, columns, write: (text) => (written += text) }
  const capabilities = { canColor: false, canAnimate: terminal, canPrompt: terminal }
  return Screen.make(undefined).pipe(
    Effect.provideService(Screen.Output, out),
    Effect.provideService(TerminalCapabilities, capabilities),
    Effect.map((screen) => ({ screen, written: () => written }))
  )
}

const erase = "\r\u001b[2K"

describe("progress on a screen", () => {
  it.effect("is one line of a terminal that the next text, the next progress or nothing replaces", () =>
    Effect.gen(function* () {
      const { screen, written } = yield* screenOn(true)
      screen.progress("10 %")
      screen.progress("20 %")
      screen.line("done")
      screen.progress("more")
      screen.progress("")
      screen.progress("")
      assert.strictEqual(written(), `\r10 %${erase}\r20 %${erase}done\n\rmore${erase}`)
    })
  )

  it.effect("never takes more than the line it can take away again, and sends no control character", () =>
    Effect.gen(function* () {
      for (const columns of [50, 20, 10]) {
        const { screen, written } = yield* screenOn(true, columns)
        screen.progress(`a\u001b[2Jb${"x".repeat(100)}`)
        assert.lengthOf([...written()], columns)
        assert.notInclude(written(), "\u001b")
      }
    })
  )

  it.effect("leaves a question alone while it is open", () =>
    Effect.gen(function* () {
      const { screen, written } = yield* screenOn(true)
      screen.progress("waits")
      screen.hold(true)
      screen.write("Allow? ")
      screen.progress("waits … 1 s")
      assert.strictEqual(written(), `\rwaits${erase}Allow? `)
      screen.hold(false)
      screen.progress("runs")
      assert.strictEqual(written(), `\rwaits${erase}Allow? \rruns`)
    })
  )

  it.effect("is a plain line where there is no terminal, after ten seconds of silence and not before", () =>
    Effect.gen(function* () {
      const { screen, written } = yield* screenOn(false)
      const later = (seconds: number) =>
        Effect.map(TestClock.adjust(`${seconds} seconds`), () => screen.progress(`${seconds} more`))
      screen.progress("at once")
      yield* later(9)
      assert.strictEqual(written(), "")
      yield* later(1)
      yield* later(9)
      screen.line("something else")
      yield* later(9)
      yield* later(2)
      screen.progress("")
      assert.strictEqual(written(), "1 more\nsomething else\n2 more\n")
    })
  )
})
