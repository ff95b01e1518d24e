/** The page of an evaluation, in a real browser, and JUnit's XML, by the browser's parser. Without Chromium skipped, and said so. */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { emit } from "../../src/effects/conversation/ConversationText.ts"
import type { Report } from "../../src/effects/eval/Report.ts"
import { directory, invoke } from "../kit/cli.ts"
import { type Contrast, contrasts } from "../kit/contrast.ts"
import { answers, assistant, event, result, settled, talk, trace, use, user } from "../kit/evals.ts"
import { hostile } from "../kit/page.ts"

const executablePath = "/usr/bin/chromium"
const present = existsSync(executablePath)

interface Visit {
  readonly page: Page
  readonly said: ReadonlyArray<string>
  readonly requests: ReadonlyArray<string>
}

const tones = ["plain", "warm", "terse"]
const sizes = ["small", "large"]

/** A matrix whose `warm` conversations are wrong, and one conversation of texts that try to be more than text. */
const prepare = (root: string): void => {
  cpSync(join(import.meta.dirname, "../fixtures/eval"), root, { recursive: true })
  const runs = join(root, "runs/matrix")
  mkdirSync(runs, { recursive: true })
  for (const tone of tones) {
    for (const size of sizes) {
      const session = [
        user("What is 2 plus 3?"),
        assistant([use("c1", "add", { a: 2, b: 3 })], trace([settled("c1", "add")])),
        answers(result("c1", "5")),
        assistant(tone === "warm" ? "Six, my dear." : "5", trace([event("run_ended", { state: "completed" })]))
      ]
      writeFileSync(join(runs, `${size}-${tone}.yaml`), emit(talk(session, { size, tone })))
    }
  }
  const suite = {
    name: "matrix",
    cases: [
      {
        assertions: [
          { type: "text_contains", value: "5" },
          { type: "tool_executed", tool: "add" }
        ]
      }
    ]
  }
  writeFileSync(join(root, "evals/matrix.yaml"), JSON.stringify(suite))
  const texts = hostile.filter((text) => text.isWellFormed())
  const bad = talk(
    [
      user(texts.join("\n")),
      assistant(texts.map((text) => ({ type: "text", text }))),
      ...texts.map((text) => user(text))
    ],
    { tone: texts[0]! }
  )
  mkdirSync(join(root, "runs/hostile"))
  writeFileSync(join(root, "runs/hostile/bad.yaml"), emit(bad))
  const name = `<img src=x onerror=alert(1)>`
  writeFileSync(
    join(root, "evals/hostile.yaml"),
    JSON.stringify({
      name,
      cases: [
        { assertions: texts.map((value) => ({ type: "text_not_contains", value })) },
        { name, assertions: [{ type: "calls_answered" }] }
      ]
    })
  )
}

describe.skipIf(!present)(
  present ? "the page of an evaluation in Chromium" : `the page of an evaluation (skipped: no ${executablePath})`,
  () => {
    const scope = Effect.runSync(Scope.make())
    let browser: Browser
    let root: string

    beforeAll(async () => {
      root = await Effect.runPromise(Scope.provide(directory, scope))
      prepare(root)
      for (const [suite, run] of [
        ["everything", "sample"],
        ["matrix", "matrix"],
        ["hostile", "hostile"]
      ]) {
        const args = ["eval", suite!, "-p", root, "--over", run!, "--judge-script", join(root, "judge.yaml")]
        const done = await Effect.runPromise(invoke(args, { PATH: process.env.PATH! }))
        assert.strictEqual(done.code, 3, done.err)
      }
      browser = await chromium.launch({ executablePath, chromiumSandbox: false })
    }, 180_000)

    afterAll(async () => {
      await browser?.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    })

    const at = (name: string) => join(root, "evals/reports", name)

    const visit = async (name: string, options: BrowserContextOptions = {}): Promise<Visit> => {
      const context = await browser.newContext(options)
      const page = await context.newPage()
      const [said, requests]: [Array<string>, Array<string>] = [[], []]
      page.on("console", (message) => said.push(message.text()))
      page.on("pageerror", (error) => said.push(error.message))
      page.on("dialog", (dialog) => said.push(dialog.message()))
      context.on("request", (request) => requests.push(request.url()))
      await page.goto(pathToFileURL(at(`${name}.html`)).href)
      return { page, said, requests }
    }

    const reportOf = (name: string) => JSON.parse(readFileSync(at(`${name}.json`), "utf8")) as Report

    it("opens without a word on the console, and asks for nothing but itself", async () => {
      const { page, requests, said } = await visit("sample")
      await page.mouse.wheel(0, 100_000)
      await page.getByRole("link", { name: "Details" }).click()
      assert.deepStrictEqual(said, [])
      assert.strictEqual(new Set(requests.map((one) => one.replace(/#.*/, ""))).size, 1)
      assert.include(await page.locator("#summary").textContent(), "not passed")
    })

    it("its sums are those of the report", async () => {
      const { page } = await visit("sample")
      const figures = await page.locator("#summary .figures dd").allTextContents()
      const { assertions, conversations_matched } = reportOf("sample").totals
      const { deferred, errored, failed, malformed, passed } = assertions
      assert.deepStrictEqual(figures.map(Number), [conversations_matched, passed, failed, deferred, malformed, errored])
      const outcomes = await page.locator("#details td:nth-child(4)").allTextContents()
      assert.strictEqual(outcomes.length, passed + failed + deferred + malformed + errored)
      assert.strictEqual(outcomes.filter((one) => one === "pass").length, passed)
    })

    it("its policy stops what somebody would get into it", async () => {
      const { page } = await visit("sample")
      const ran = await page.evaluate<boolean>(`(() => {
        const script = document.createElement("script")
        script.textContent = "window.broken = true"
        document.body.append(script)
        return window.broken === true
      })()`)
      assert.isFalse(ran)
    })

    it("draws the matrix as a heat map: one cell a conversation, the hotter the better, each leading to its details", async () => {
      const { page } = await visit("matrix")
      const cells = page.locator("#matrix .heat td")
      assert.strictEqual(await cells.count(), tones.length * sizes.length)
      assert.deepStrictEqual(await page.locator("#matrix .heat thead th").allTextContents(), [
        "size \\ tone",
        "plain",
        "terse",
        "warm"
      ])
      const shades = await page.evaluate<ReadonlyArray<string>>(
        `[...document.querySelectorAll("#matrix .heat td")].map((one) => one.className + " " + one.textContent)`
      )
      assert.deepStrictEqual(shades, ["h5 2/2", "h5 2/2", "h2 1/2", "h5 2/2", "h5 2/2", "h2 1/2"])
      await page.getByRole("link", { name: "small-warm: 1/2 passed" }).click()
      const target = page.locator("article:target")
      assert.strictEqual(await target.locator("h3").textContent(), "small-warm")
      await target.locator("summary", { hasText: "conversation: 4 messages" }).click()
      assert.isTrue(await target.getByText("Six, my dear.", { exact: true }).isVisible())
      await target.locator("summary", { hasText: "trace: 10 tokens in, 5 out" }).first().click()
      assert.isTrue(await target.getByText("call_settled").isVisible())
    })

    it("finds conversations by text and by outcome, from the keyboard", async () => {
      const { page } = await visit("matrix")
      await page.keyboard.press("/")
      await page.keyboard.type("warm small")
      await page.locator("#found", { hasText: "1 of 6 conversations" }).waitFor()
      assert.strictEqual(await page.locator("#conversations tbody tr:visible").count(), 1)
      await page.getByRole("button", { name: "Clear" }).click()
      await page.locator("#found:empty").waitFor({ state: "attached" })
      await page.getByLabel("With an assertion that is").selectOption("fail")
      assert.strictEqual(await page.locator("#conversations tbody tr:visible").count(), 2)
    })

    it("no text of a conversation, a suite or a reason becomes more than text", async () => {
      const { page, said } = await visit("hostile")
      await page.evaluate(`document.querySelectorAll("details").forEach((one) => { one.open = true })`)
      assert.deepStrictEqual(said, [])
      const strange = await page.evaluate<ReadonlyArray<string>>(
        `[...document.querySelectorAll("img, iframe, b, svg, object, embed, a:not([href^='#'])")].map((one) => one.outerHTML)`
      )
      assert.deepStrictEqual(strange, [])
      assert.include(await page.locator("h1").textContent(), "<img src=x onerror=alert(1)>")
      const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/
      assert.isFalse(acting.test(readFileSync(at("hostile.html"), "utf8")))
    })

    it("reads without its script", async () => {
      const { page, said } = await visit("matrix", { javaScriptEnabled: false })
      assert.isFalse(await page.locator("#filter").isVisible())
      await page.locator("#details summary").first().click()
      assert.isTrue(await page.locator("#details pre").first().isVisible())
      assert.deepStrictEqual(said, [])
    })

    for (const colorScheme of ["light", "dark"] as const) {
      it(`every text has a contrast of 4.5 : 1 at least where it is ${colorScheme}`, async () => {
        for (const name of ["sample", "matrix"]) {
          const { page } = await visit(name, { colorScheme })
          await page.evaluate(`document.querySelectorAll("details").forEach((one) => { one.open = true })`)
          const found = await page.evaluate<ReadonlyArray<Contrast>>(contrasts)
          assert.isAbove(found.length, 100)
          assert.deepStrictEqual(
            found.filter(({ ratio }) => ratio < 4.5),
            []
          )
        }
      })
    }

    it("fits a phone, and prints without what is for screens", async () => {
      const { page } = await visit("sample", { viewport: { width: 360, height: 780 } })
      assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), 360)
      await page.emulateMedia({ media: "print" })
      assert.isFalse(await page.locator("nav").isVisible())
      assert.isFalse(await page.locator("#filter").isVisible())
    })

    it("JUnit's XML is XML, whatever is in it, with the same sums", async () => {
      const { page } = await visit("sample")
      for (const name of ["sample", "hostile"]) {
        const xml = readFileSync(at(`${name}-junit.xml`), "utf8")
        const found = await page.evaluate<{ readonly error: string | null; readonly counts: ReadonlyArray<number> }>(
          `(() => {
            const read = new DOMParser().parseFromString(${JSON.stringify(xml)}, "application/xml")
            const count = (name) => read.getElementsByTagName(name).length
            const error = read.querySelector("parsererror")?.textContent ?? null
            return { error, counts: ["testcase", "failure", "error", "skipped"].map(count) }
          })()`
        )
        assert.isNull(found.error)
        const { deferred, errored, failed, malformed, passed } = reportOf(name).totals.assertions
        assert.deepStrictEqual(found.counts, [
          passed + failed + deferred + malformed + errored,
          failed,
          malformed + errored,
          deferred
        ])
      }
    })
  }
)
