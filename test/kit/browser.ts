/** A real browser for pages that open from disk, where there is one. */
import { existsSync } from "node:fs"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"

export const executablePath = "/usr/bin/chromium"
export const present = existsSync(executablePath)

/** A browser on a busy machine starts and draws slowly; one that hangs is noticed all the same. */
export const patience = 300_000

/** For the title of tests that need it. */
export const titled = (title: string): string => (present ? title : `${title} (skipped: no ${executablePath})`)

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath, chromiumSandbox: false, timeout: patience })

export interface Visit {
  readonly page: Page
  /** What the console said, and errors of the page. */
  readonly said: ReadonlyArray<string>
  readonly requests: ReadonlyArray<string>
}

export const visit = async (browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> => {
  // One at a time: pages that nobody looks at any more take time from the others.
  for (const left of browser.contexts()) await left.close()
  const context = await browser.newContext(options)
  const page = await context.newPage()
  // How long something may take is the test's question: a slow machine is not a fault.
  page.setDefaultTimeout(0)
  const [said, requests]: [Array<string>, Array<string>] = [[], []]
  page.on("console", (message) => said.push(message.text()))
  page.on("pageerror", (error) => said.push(error.message))
  page.on("dialog", (dialog) => {
    said.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  context.on("request", (request) => requests.push(request.url()))
  await page.goto(url)
  return { page, said, requests }
}

export interface Drawn {
  readonly x: number
  readonly width: number
  readonly state: string
}

/** The bars of a lane of the timeline as they are on the screen: place and width as parts of the picture's. */
export const drawnBars = (page: Page, lane: string): Promise<ReadonlyArray<Drawn>> =>
  page.evaluate<ReadonlyArray<Drawn>>(`(() => {
    const { left, width } = document.querySelector("svg.timeline").getBoundingClientRect()
    return [...document.querySelectorAll("rect.bar.${lane}")].map((one) => {
      const box = one.getBBox()
      return { x: box.x / width, width: box.width / width, state: one.classList[2] }
    })
  })()`)

/** How much wider the page is than the window: 0 where nothing has to be scrolled sideways. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth")

export const desktop = { width: 1280, height: 900 }
export const phone = { width: 360, height: 780 }
