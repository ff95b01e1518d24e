/** Reports of a long run and of a troubled one, in a real browser. Where there is no Chromium this is skipped, and says so. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { ofText } from "../../src/effects/trace/report/HtmlReport.ts"
import { pageRows } from "../../src/effects/trace/report/Script.ts"
import { desktop, drawnBars, launch, overflow, patience, phone, present, titled, visit } from "../kit/browser.ts"
import { type Contrast, contrasts } from "../kit/contrast.ts"
import { hostile, invisible } from "../kit/page.ts"
import { busy, long, textOf, type Written } from "../kit/reportTraces.ts"

const count = 6_000
const events = long(count)

describe.skipIf(!present)(titled("the report of a long run in Chromium"), { timeout: patience }, () => {
  const directory = mkdtempSync(join(tmpdir(), "writ-report-"))
  let browser: Browser

  beforeAll(async () => {
    browser = await launch()
  }, patience)

  afterAll(async () => {
    await browser?.close()
    rmSync(directory, { recursive: true })
  })

  const urlOf = (name: string, written: ReadonlyArray<Written>): string => {
    const path = join(directory, `${name}.html`)
    if (!existsSync(path)) writeFileSync(path, ofText(textOf(written)).pieces.join(""))
    return pathToFileURL(path).href
  }

  const open = async (options: BrowserContextOptions = {}) => {
    const opened = await visit(browser, urlOf("long", events), options)
    if (options.javaScriptEnabled !== false) await opened.page.locator(".pager.above").waitFor()
    return opened
  }

  const rows = (page: Page) => page.locator("#events tbody tr")
  const extent = (page: Page) => page.locator(".pager.above .extent").textContent()
  const seqs = (page: Page) =>
    page.evaluate<ReadonlyArray<number>>(
      `[...document.querySelectorAll("#events tbody tr td:first-child")].map((one) => Number(one.textContent))`
    )

  it("shows the events in pages, and all of them can be reached from the keyboard", async () => {
    const { page, said } = await open()
    assert.strictEqual(await extent(page), `1 to ${pageRows} of ${count}`)
    const seen: Array<number> = [...(await seqs(page))]
    const next = page.locator(".pager.above").getByRole("button", { name: "Next" })
    while (await next.isEnabled()) {
      await next.press("Enter")
      seen.push(...(await seqs(page)))
    }
    assert.deepStrictEqual(
      seen,
      events.map(({ seq }) => seq)
    )
    await page.locator(".pager.below").getByRole("button", { name: "First" }).press("Enter")
    assert.strictEqual(await extent(page), `1 to ${pageRows} of ${count}`)
    await page.getByLabel("Go to event").fill("4321")
    await page.keyboard.press("Enter")
    assert.include(await seqs(page), 4321)
    await page.locator("#event-4321").waitFor()
    assert.deepStrictEqual(said, [])
  })

  it("finds what is on no page yet, by words and by kind", async () => {
    const { page } = await open()
    const found = page.locator("#found")
    await page.keyboard.press("/")
    await page.keyboard.type('turn":1234 MODEL_CALL')
    await found.filter({ hasText: `2 of ${count} rows` }).waitFor()
    assert.deepStrictEqual(await seqs(page), [4936, 4937])
    await page.getByRole("button", { name: "Clear" }).click()
    await page.locator("#found:empty").waitFor({ state: "attached" })
    assert.strictEqual(await rows(page).count(), pageRows)
    await page.getByLabel("Show").selectOption("failed")
    const failed = events.filter(({ data }) => data["ok"] === false)
    await found.filter({ hasText: `${failed.length} of ${count} rows` }).waitFor()
    assert.deepStrictEqual(
      await seqs(page),
      failed.map(({ seq }) => seq)
    )
    await page.keyboard.press("/")
    await page.keyboard.type("no such thing")
    await found.filter({ hasText: `0 of ${count} rows` }).waitFor()
    assert.strictEqual(await rows(page).count(), 0)
  })

  it("what it draws on demand is text, however hostile", async () => {
    const { page, requests, said } = await open()
    await page.keyboard.press("/")
    await page.keyboard.type('"evil"')
    const evil = events.filter(({ data }) => "evil" in data)
    await page.locator("#found", { hasText: `${evil.length} of ${count} rows` }).waitFor()
    const shown = await page.evaluate<ReadonlyArray<string>>(
      `[...document.querySelectorAll("#events td.data")].map((one) => one.textContent)`
    )
    assert.isAtLeast(evil.length, hostile.length)
    for (const text of shown) assert.notMatch(text, invisible)
    assert.isTrue(shown.some((text) => text.includes("<script>alert(1)</script>")))
    assert.isTrue(shown.some((text) => text.includes("safe\\u202egpj.exe\\u202c")))
    const names = await page.evaluate<ReadonlyArray<string>>(
      `[...new Set([...document.querySelectorAll("#events td, #events td *")].map((one) => one.localName))].sort()`
    )
    assert.deepStrictEqual(names, ["span", "td"])
    assert.strictEqual(await page.evaluate(`document.querySelectorAll("img, iframe, script").length`), 1)
    assert.deepStrictEqual(said, [])
    assert.strictEqual(requests.length, 1)
  })

  it("an address that names an event leads to it, wherever it is", async () => {
    const { page } = await open()
    for (const seq of [5555, 3, 2048]) {
      await page.evaluate(`location.hash = "#event-${seq}"`)
      await page.locator(`#event-${seq}:target`).waitFor()
      assert.isTrue(await page.locator(`#event-${seq}`).isVisible())
    }
  })

  it("has as much in the document as a page needs, however long the run was, and scrolls to its end", async () => {
    const size = async (written: ReadonlyArray<Written>, name: string) => {
      const { page } = await visit(browser, urlOf(name, written))
      await page.locator(".pager.above").waitFor()
      const elements = await page.evaluate<number>(`document.querySelectorAll("*").length`)
      for (let at = 0; at < 5; at++) await page.mouse.wheel(0, 5_000)
      await page.keyboard.press("End")
      // The page's policy forbids the browser's own way to wait for this.
      const atEnd = () =>
        page.evaluate<boolean>(`document.querySelector("footer").getBoundingClientRect().bottom <= innerHeight + 1`)
      while (!(await atEnd())) await page.keyboard.press("End")
      return elements
    }
    const [some, many] = [await size(events, "long"), await size(long(3 * count), "longer")]
    assert.isBelow(many, 240_000)
    assert.isBelow(many, some * 1.3)
  })

  it("without its script it shows the first and the last events, and says so", async () => {
    const { page, said } = await open({ javaScriptEnabled: false })
    assert.isFalse(await page.locator("#filter").isVisible())
    assert.isFalse(await page.locator(".pager").first().isVisible())
    assert.include(await page.locator("#left-out").textContent(), "The first and last")
    assert.isTrue(await page.locator("#event-0").isVisible())
    assert.isTrue(await page.locator(`#event-${count - 1}`).isVisible())
    assert.deepStrictEqual(said, [])
  })

  it("tells how a troubled run went: bars of every kind, tries inside their call, what is gone hatched", async () => {
    const { page, said } = await visit(browser, urlOf("busy", busy))
    const span = busy.at(-1)!.t_ms
    const millis = async (lane: string) =>
      (await drawnBars(page, lane)).map(({ state, width, x }) => [
        state,
        Math.round(x * span),
        Math.round((x + width) * span)
      ])
    assert.deepStrictEqual(await millis("model"), [
      ["good", 100, 520],
      ["good", 4_400, 5_400],
      ["rolled", 6_000, 7_500]
    ])
    assert.deepStrictEqual(await millis("tool"), [
      ["good", 1_530, 3_330],
      ["bad", 3_340, 4_340]
    ])
    assert.deepStrictEqual(await millis("wait"), [
      ["good", 522, 1_522],
      ["good", 1_930, 2_230],
      ["good", 2_630, 3_230]
    ])
    assert.strictEqual(await page.locator("rect.hatch").count(), 1)
    assert.strictEqual(await page.locator('a[aria-label*="pay"] rect.attempt').count(), 3)
    assert.strictEqual(await page.locator('a[aria-label*="turn 2"] rect.attempt').count(), 2)
    const told = (await page.locator("#conversation").textContent())!
    for (const part of ["allow by console", "failed: unavailable", "Refused: unknown_tool", "rolled back: limit"]) {
      assert.include(told, part)
    }
    // Reasoning is folded until somebody asks.
    const reasoning = page.getByText("She is owed 20.", { exact: true })
    assert.isFalse(await reasoning.isVisible())
    await page.getByText("Reasoning", { exact: true }).click()
    assert.isTrue(await reasoning.isVisible())
    assert.deepStrictEqual(said, [])
  })

  for (const colorScheme of ["light", "dark"] as const) {
    it(`a troubled run can be read where it is ${colorScheme}, on a desktop and on a phone`, async () => {
      for (const viewport of [desktop, phone]) {
        const { page } = await visit(browser, urlOf("busy", busy), { colorScheme, viewport })
        assert.strictEqual(await overflow(page), 0)
        const low = (await page.evaluate<ReadonlyArray<Contrast>>(contrasts)).filter(({ ratio }) => ratio < 4.5)
        assert.deepStrictEqual(low, [])
      }
    })
  }
})
