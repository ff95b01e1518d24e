/** Conversations that are filled, for people and as JSON: a line per file, progress while they are at work, the sum at the end. */
import * as Effect from "effect/Effect"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { type FileResult, recordOf } from "./ConversationRun.ts"
import { block, count, inline } from "./Printable.ts"
import { snake } from "./Report.ts"
import type { Screen } from "./Screen.ts"

/** From what can be put right by going on to what has to be looked at: the last one that occurs is the exit code. */
const severity: ReadonlyArray<number> = [0, 6, 5, 4, 3, 2, 1, 7]

export const worst = (results: ReadonlyArray<FileResult>): number =>
  results.reduce((code, { code: next }) => (severity.indexOf(next) > severity.indexOf(code) ? next : code), 0)

const tookText = ({ toolCalls, turns }: Pick<FileResult, "turns" | "toolCalls">): string =>
  turns === 0 ? "" : ` (${count(turns, "turn")}, ${count(toolCalls, "call")})`

export class ConversationView {
  readonly #screen: Screen
  readonly #total: number
  readonly #quiet: boolean
  #done = 0
  #failed = 0
  readonly #working = new Set<string>()

  constructor(screen: Screen, total: number, quiet: boolean) {
    this.#screen = screen
    this.#total = total
    this.#quiet = quiet
  }

  readonly began = (path: string): void => {
    this.#working.add(path)
    this.#draw()
  }

  readonly ended = (result: FileResult): void => {
    this.#working.delete(result.path)
    this.#done++
    if (result.code !== 0) this.#failed++
    if (!this.#quiet) this.#line(result)
    this.#draw()
  }

  /** A bar is drawn only where there is more than one file to wait for. */
  #draw(): void {
    if (this.#quiet || this.#total < 2) return
    if (this.#done === this.#total) {
      this.#screen.progress("")
      return
    }
    const width = 20
    const full = Math.floor((width * this.#done) / this.#total)
    const bar = `${"█".repeat(full)}${"░".repeat(width - full)}`
    const failed = this.#failed === 0 ? "" : `, ${this.#failed} not done`
    const at = [...this.#working].map((path) => inline(RunDirectory.shown(path))).join(", ")
    this.#screen.progress(`${bar} ${this.#done} of ${this.#total}${failed}  ${at}`)
  }

  #line(result: FileResult): void {
    const { line, paint } = this.#screen
    const mark = result.code === 0 ? paint.green("✓") : paint.red("✗")
    line(`${mark} ${paint.bold(inline(result.path))}  ${block(result.message)}${paint.dim(tookText(result))}`)
    if (this.#total > 1 && result.code === 0) return
    for (const run of result.runs) {
      const record = recordOf(run)
      if (record !== undefined) line(paint.dim(`  message ${run.at}: record ${inline(RunDirectory.shown(record))}`))
    }
  }

  readonly summary = (results: ReadonlyArray<FileResult>): void => {
    if (this.#quiet || results.length < 2) return
    const { line, paint } = this.#screen
    const done = results.filter(({ code }) => code === 0).length
    const sums = results.reduce(
      (sum, { toolCalls, turns }) => ({ turns: sum.turns + turns, toolCalls: sum.toolCalls + toolCalls }),
      { turns: 0, toolCalls: 0 }
    )
    const all = `${done} of ${count(results.length, "conversation")} done`
    line(`${done === results.length ? paint.green(all) : paint.red(all)}${paint.dim(tookText(sums))}`)
  }
}

/** The one document of `--json`. */
export const document = (results: ReadonlyArray<FileResult>) => ({
  exit_code: worst(results),
  conversations: results.map(({ code, message, path, runs, stop, text, toolCalls, turns }) => ({
    file: path,
    exit_code: code,
    status: stop === undefined ? (code === 0 ? "complete" : "not_started") : snake(stop._tag),
    message,
    text: text ?? null,
    turns,
    tool_calls: toolCalls,
    runs: runs.map((run) => ({
      run_id: run.runId,
      message: run.at,
      status: snake(run.stop._tag),
      directory: recordOf(run) ?? null
    }))
  }))
})

/** While it runs, so that a line of progress never stays behind. */
export const cleared = (screen: Screen): Effect.Effect<void> => Effect.sync(() => screen.progress(""))
