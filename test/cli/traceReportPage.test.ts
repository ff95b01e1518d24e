/** The report of the demonstration run, in a real browser. Where there is no Chromium this is skipped, and says so. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Browser, BrowserContextOptions } from "playwright-core"
import {
  desktop,
  drawnBars,
  launch,
  visit as open,
  overflow,
  patience,
  phone,
  present,
  titled,
  type Visit
} from "../kit/browser.ts"
import { directory, runsIn, writ } from "../kit/cli.ts"
import { type Contrast, contrasts } from "../kit/contrast.ts"

interface Raw {
  readonly t_ms: number
  readonly event_type: string
  readonly data: Readonly<Record<string, unknown>>
}

describe.skipIf(!present)(titled("the report in Chromium"), { timeout: patience }, () => {
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
    browser = await launch()
  }, patience)

  afterAll(async () => {
    await browser?.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const visit = (options: BrowserContextOptions = {}): Promise<Visit> => open(browser, url, options)

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

  for (const [name, viewport] of Object.entries({ desktop, phone })) {
    it(`draws one bar per turn and call, in proportion to the recorded times, on a ${name}`, async () => {
      const { page } = await visit({ viewport })
      const [first, last] = [events[0]!.t_ms, events.at(-1)!.t_ms]
      const times = (type: string) => events.filter((event) => event.event_type === type).map(({ t_ms }) => t_ms)
      const lanes: Readonly<Record<string, readonly [start: string, end: string]>> = {
        model: ["model_call_started", "model_call_finished"],
        tool: ["tool_execution_started", "tool_execution_finished"]
      }
      for (const [lane, [start, end]] of Object.entries(lanes)) {
        const [starts, ends] = [times(start), times(end)]
        const bars = await drawnBars(page, lane)
        assert.strictEqual(bars.length, starts.length)
        assert.isAbove(bars.length, 3)
        for (const [index, bar] of bars.entries()) {
          const part = (ends[index]! - starts[index]!) / (last - first)
          assert.closeTo(bar.x, (starts[index]! - first) / (last - first), 0.001)
          assert.closeTo(bar.width, part, 0.001)
        }
      }
      // A tool's own time lies between its events: no bar is shorter.
      const recorded = events.flatMap(({ data }) =>
        typeof data["duration_ms"] === "number" ? [data["duration_ms"]] : []
      )
      const widths = (await drawnBars(page, "tool")).map(({ width }) => width * (last - first))
      for (const [index, millis] of recorded.entries()) assert.isAtLeast(widths[index]!, millis - 1)
    })
  }

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

  for (const [name, viewport] of Object.entries({ desktop, phone })) {
    it(`fits a ${name}: nothing makes the page wider than it, folded or not`, async () => {
      const { page } = await visit({ viewport })
      assert.strictEqual(await overflow(page), 0)
      assert.isTrue(await page.locator("#events tbody tr").first().isVisible())
      await page.evaluate(`document.querySelectorAll("details").forEach((one) => { one.open = true })`)
      assert.strictEqual(await overflow(page), 0)
    })
  }

  it("everything that can be operated can be reached with the keyboard, in the order of the page", async () => {
    const { page } = await visit()
    const focusable = "a, button, input, select, summary, [tabindex='0']"
    const expected = await page.evaluate<number>(
      `[...document.querySelectorAll("${focusable}")].filter((one) => one.checkVisibility()).length`
    )
    assert.isAbove(expected, 20)
    const places: Array<number> = []
    for (let at = 0; at < expected; at++) {
      await page.keyboard.press("Tab")
      const where = await page.evaluate<number>(
        `[...document.querySelectorAll("${focusable}")].filter((one) => one.checkVisibility()).indexOf(document.activeElement)`
      )
      places.push(where)
    }
    assert.deepStrictEqual(
      places,
      places.map((_, index) => index)
    )
  })

  it("prints: no navigation, no search, folded texts unfolded", async () => {
    const { page } = await visit({ colorScheme: "dark" })
    await page.emulateMedia({ media: "print" })
    assert.strictEqual(await page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
    assert.strictEqual(await overflow(page), 0)
    assert.isFalse(await page.locator("nav").isVisible())
    assert.isFalse(await page.locator("#filter").isVisible())
    assert.isTrue(await page.locator("#artifacts pre").isVisible())
    assert.isAbove((await page.pdf()).length, 10_000)
  })
})
