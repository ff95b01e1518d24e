/** A matrix while it is worked through, and what it came to, for people. */
import type { CellOutcome } from "../effects/eval/bench/Bench.ts"
import { type BenchReport, cellName, type Row } from "../effects/eval/bench/BenchReport.ts"
import type { Cell } from "../effects/eval/bench/Cell.ts"
import { interval, percent } from "../effects/eval/Markdown.ts"
import { count, cut, inline } from "./Printable.ts"
import type { Screen } from "./Screen.ts"

const width = 20

export class BenchView {
  readonly #screen: Screen
  readonly #quiet: boolean
  readonly #working = new Map<string, string>()
  #failed = 0
  #cached = 0
  #line = ""

  constructor(screen: Screen, quiet: boolean) {
    this.#screen = screen
    this.#quiet = quiet
  }

  readonly began = (cell: Cell): void => {
    this.#working.set(cell.key, cellName(cell))
    this.#draw()
  }

  readonly done = (outcome: CellOutcome, done: number, total: number): void => {
    this.#working.delete(outcome.cell.key)
    if (outcome._tag === "NotDone") this.#failed++
    else if (outcome.cached) this.#cached++
    const full = Math.floor((width * done) / total)
    const bar = `${"█".repeat(full)}${"░".repeat(width - full)}`
    const cached = this.#cached === 0 ? "" : `, ${this.#cached} from before`
    const failed = this.#failed === 0 ? "" : `, ${this.#failed} not done`
    this.#line = `${bar} ${done} of ${count(total, "cell")}${cached}${failed}`
    this.#draw()
  }

  #draw(): void {
    if (this.#quiet) return
    const at = [...this.#working.values()].map(inline).join("; ")
    this.#screen.progress(`${this.#line}${at === "" ? "" : `  ${at}`}`)
  }

  readonly report = (bench: BenchReport): void => {
    const { columns, line, paint } = this.#screen
    const names = bench.rows.map((row) => inline(`${row.contestant}, ${row.policy}`))
    const wide = Math.min(40, Math.max(...names.map((name) => name.length)))
    for (const [at, row] of bench.rows.entries()) {
      const share = percent(row.total.passes, row.total.tries)
      line(`${paint.bold(cut(names[at]!, wide).padEnd(wide))}  ${share.padStart(7)} ${rest(row)}`)
    }
    for (const { cell, message } of bench.not_done.slice(0, 10)) {
      line(`  ${paint.red("not done")} ${inline(cell)}: ${cut(message, Math.max(20, columns - cell.length - 14))}`)
    }
    if (bench.not_done.length > 10) line(paint.dim(`  … and ${bench.not_done.length - 10} more, in the report`))
  }
}

const rest = ({ cells, flaky, metrics, total }: Row): string => {
  const each = (sum: number) => (sum / Math.max(1, metrics?.conversations_with_trace ?? 1)).toFixed(0)
  return [
    `(${interval(total.interval)}) of ${total.tries}`,
    ...(metrics === undefined
      ? []
      : [
          `${each(metrics.total_input_tokens)} + ${each(metrics.total_output_tokens)} tokens, ${each(metrics.total_latency_ms)} ms each`
        ]),
    ...(flaky.length === 0 ? [] : [`${flaky.length} flaky`]),
    ...(cells.not_done === 0 ? [] : [`${cells.not_done} not done`]),
    ...(cells.cached === 0 ? [] : [`${cells.cached} from before`])
  ].join(" · ")
}
