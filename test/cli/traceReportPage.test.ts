/** The report of the demonstration run, in a real browser. Where there is no Chromium this is skipped, and says so. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { directory, runsIn, writ } from "../kit/cli.ts"
import { type Contrast, contrasts } from "../kit/contrast.ts"

const executablePath = "/usr/bin/chromium"
const present = existsSync(executablePath)

interface Visit {
  readonly page: Page
  /** What the console said, and errors of the page. */
  readonly said: ReadonlyArray<string>
  readonly requests: ReadonlyArray<string>
}

interface Raw {
  readonly t_ms: number
  readonly event_type: string
  readonly data: Readonly<Record<string, unknown>>
}

describe.skipIf(!present)(
  present ? "the report in Chromium" : `the report in Chromium (skipped: no ${executablePath})`,
  () => {
    const scope = Effect.runSync(Scope.make())
    let browser: Browser
    let url: string
    let events: ReadonlyArray<Raw>

    beforeAll(async () => {
      const cwd = await Effect.runPromise(Scope.provide(directory, scope))
      const demo = await Effect.runPromise(writ(["demo", "--quiet"], { cwd }))
      assert.strictEqual(demo.code, 0, demo.err)
      const run = runsIn(cwd)[0]!
      const report = await Effect.runPromise(writ(["trace", "report", run], { cwd }))
      assert.strictEqual(report.code, 0, report.err)
      assert.include(readdirSync(cwd), "report.html")
      const lines = readFileSync(join(run, "trace.jsonl"), "utf8").trimEnd().split("\n")
      events = lines.map((line) => JSON.parse(line) as Raw)
      url = pathToFileURL(join(cwd, "report.html")).href
      browser = await chromium.launch({ executablePath, chromiumSandbox: false })
    }, 180_000)

    afterAll(async () => {
      await browser?.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    })

    const visit = async (options: BrowserContextOptions = {}): Promise<Visit> => {
      const context = await browser.newContext(options)
      const page = await context.newPage()
      const [said, requests]: [Array<string>, Array<string>] = [[], []]
      page.on("console", (message) => said.push(message.text()))
      page.on("pageerror", (error) => said.push(error.message))
      context.on("request", (request) => requests.push(request.url()))
      await page.goto(url)
      return { page, said, requests }
    }

    const count = (type: string) => events.filter((event) => event.event_type === type).length

    it("opens without a word on the console, and asks for nothing but itself", async () => {
      const { page, requests, said } = await visit()
      await page.mouse.wheel(0, 100_000)
      await page.getByRole("link", { name: "Events" }).click()
      assert.deepStrictEqual(said, [])
      assert.deepStrictEqual(
        requests.map((one) => one.replace(/#.*/, "")),
        [url]
      )
      assert.include(await page.locator("#summary").textContent(), "completed")
      assert.include(await page.locator("#summary").textContent(), "valid trace")
    })

    it("its policy stops what somebody would get into it", async () => {
      const { page } = await visit()
      const failing = page.waitForEvent("requestfailed")
      const ran = await page.evaluate<boolean>(`(() => {
        const script = document.createElement("script")
        script.textContent = "window.broken = true"
        const image = document.createElement("img")
        image.src = "https://example.org/x.png"
        document.body.append(script, image)
        return window.broken === true
      })()`)
      assert.isFalse(ran)
      assert.strictEqual((await failing).failure()?.errorText, "csp")
    })

    it("draws one bar per turn and call, in proportion to the recorded times", async () => {
      const { page } = await visit()
      const boxes = (lane: string) =>
        page.evaluate<ReadonlyArray<{ readonly x: number; readonly width: number }>>(
          `[...document.querySelectorAll("rect.bar.${lane}")].map((one) => one.getBBox()).map(({ width, x }) => ({ width, x }))`
        )
      const [models, tools] = [await boxes("model"), await boxes("tool")]
      assert.strictEqual(models.length, count("model_call_started"))
      assert.strictEqual(tools.length, count("tool_execution_started"))
      const times = (type: string) => events.filter((event) => event.event_type === type).map((event) => event.t_ms)
      const [begun, ended] = [times("model_call_started"), times("model_call_finished")]
      const span = events.at(-1)!.t_ms - events[0]!.t_ms
      const { width } = (await page.locator("svg.timeline").boundingBox())!
      for (const [index, box] of models.entries()) {
        assert.closeTo(box.width / width, (ended[index]! - begun[index]!) / span, 0.002)
        assert.closeTo(box.x / width, (begun[index]! - events[0]!.t_ms) / span, 0.002)
      }
    })

    it("finds events by search and by kind, from the keyboard", async () => {
      const { page } = await visit()
      const rows = page.locator("#events tbody tr")
      assert.strictEqual(await rows.count(), events.length)
      await page.keyboard.press("/")
      await page.keyboard.type("artifact_written report.md")
      await page.locator("#found", { hasText: `1 of ${events.length} rows` }).waitFor()
      const visible = page.locator("#events tbody tr:visible")
      assert.strictEqual(await visible.count(), 1)
      assert.include(await visible.textContent(), "artifact_written")
      await page.getByRole("button", { name: "Clear" }).click()
      await page.locator("#found:empty").waitFor({ state: "attached" })
      assert.strictEqual(await visible.count(), events.length)
      await page.getByLabel("Show").selectOption("run")
      assert.strictEqual(await visible.count(), count("run_started") + count("provenance") + count("run_completed"))
    })

    it("a bar leads to its call, and the first key leads past the navigation", async () => {
      const { page } = await visit()
      await page.keyboard.press("Tab")
      assert.strictEqual(await page.evaluate("document.activeElement.className"), "skip")
      await page.locator('svg.timeline a[href="#call-4"]').focus()
      await page.keyboard.press("Enter")
      assert.include(await page.locator(":target").textContent(), "write_artifact")
    })

    it("reads without its script", async () => {
      const { page, said } = await visit({ javaScriptEnabled: false })
      assert.isFalse(await page.locator("#filter").isVisible())
      assert.isTrue(await page.locator("#events tbody tr").last().isVisible())
      await page.locator("#artifacts summary").click()
      assert.include(await page.locator("#artifacts pre").textContent(), "relative improvement")
      assert.deepStrictEqual(said, [])
    })

    for (const colorScheme of ["light", "dark"] as const) {
      it(`every text has a contrast of 4.5 : 1 at least where it is ${colorScheme}`, async () => {
        const { page } = await visit({ colorScheme })
        await page.evaluate(`document.querySelectorAll("details").forEach((one) => { one.open = true })`)
        const found = await page.evaluate<ReadonlyArray<Contrast>>(contrasts)
        assert.isAbove(found.length, 100)
        assert.deepStrictEqual(
          found.filter(({ ratio }) => ratio < 4.5),
          []
        )
      })
    }

    it("fits a phone: nothing makes the page wider than it", async () => {
      const { page } = await visit({ viewport: { width: 360, height: 780 } })
      assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth"), 360)
      assert.isTrue(await page.locator("#events tbody tr").first().isVisible())
    })

    it("prints: no navigation, no search, folded texts unfolded", async () => {
      const { page } = await visit()
      await page.emulateMedia({ media: "print" })
      assert.isFalse(await page.locator("nav").isVisible())
      assert.isFalse(await page.locator("#filter").isVisible())
      assert.isTrue(await page.locator("#artifacts pre").isVisible())
      assert.isAbove((await page.pdf()).length, 10_000)
    })
  }
)
