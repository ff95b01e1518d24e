/**
 * Works through the cells of a matrix: what is there is not done again, what is not is run by whoever was asked to, judged by the
 * suite, and kept at once. Stopped anywhere, the same matrix goes on where it was.
 */
import * as Effect from "effect/Effect"
import type { Conversation } from "../../conversation/Conversation.ts"
import type { ConversationError } from "../../conversation/ConversationError.ts"
import type { Assertion } from "../assertions/Kinds.ts"
import { evaluate } from "../Evaluation.ts"
import type { KeptError } from "../Kept.ts"
import type { Around } from "../Kind.ts"
import { match } from "../Matching.ts"
import type { ReportError } from "../ReportFiles.ts"
import { type Case, type Suite, unnamed } from "../Suite.ts"
import type { Cell, Contestant } from "./Cell.ts"
import type { CellStore, Done, Ran, Verdicts } from "./CellStore.ts"

export type BenchError = ReportError | KeptError | ConversationError

/** What a run of one cell came to. `NotDone`: nothing can be said about the contestant, and the cell has its turn again. */
export type RunResult =
  | ({ readonly _tag: "Ran" } & Omit<Ran, "conversation_sha256">)
  | { readonly _tag: "NotDone"; readonly code: number; readonly message: string }

export type CellOutcome =
  | {
      readonly _tag: "Done"
      readonly cell: Cell
      readonly done: Done
      readonly verdicts: Verdicts
      /** Nothing was run for it this time. */
      readonly cached: boolean
    }
  | { readonly _tag: "NotDone"; readonly cell: Cell; readonly code: number; readonly message: string }

/** Fills the conversation, in the cell's file. */
export type Run<R> = (cell: Cell, conversation: Conversation) => Effect.Effect<RunResult, never, R>

/** Runs a contestant's cells in any order and number at a time, handing each to `each`. */
export type Contest<E, R> = (
  contestant: Contestant,
  cells: ReadonlyArray<Cell>,
  each: <R2>(cell: Cell, run: Run<R2>) => Effect.Effect<void, BenchError, R2>
) => Effect.Effect<void, E, R>

export interface BenchOptions {
  readonly store: CellStore
  readonly suite: Suite
  /** Names the suite and whatever judges for it. */
  readonly suiteKey: string
  /** Surroundings of the assertions; transcripts of judges lie with their cell. */
  readonly around: Omit<Around, "judges">
  readonly onDone?: (outcome: CellOutcome, done: number, total: number) => void
}

interface Indexed {
  readonly index: number
  readonly case: Case
}

/** The cases that may be about a conversation of a name; whether they are, matching says. */
const indexOf = ({ cases }: Suite) => {
  const named = new Map<string, Array<Indexed>>()
  const others: Array<Indexed> = []
  for (const [index, one] of cases.entries()) {
    if (one.name === undefined) others.push({ index, case: one })
    else named.set(one.name, [...(named.get(one.name) ?? []), { index, case: one }])
  }
  return (name: string): ReadonlyArray<Indexed> =>
    [...(named.get(name) ?? []), ...others].toSorted((a, b) => a.index - b.index)
}

type CasesFor = ReturnType<typeof indexOf>

/** Everything the suite asserts about the cell's conversation. */
const verdictsOf = Effect.fnUntraced(function* (options: BenchOptions, cell: Cell, done: Done, casesFor: CasesFor) {
  const { around, store, suite, suiteKey } = options
  const known = yield* store.verdicts(cell, suiteKey)
  if (known !== undefined) return known
  const named = { name: cell.prompt.name, conversation: done.conversation }
  const cases = casesFor(named.name).filter((one) => match(one.case, [named])._tag === "Some")
  const judges = `${store.directory(cell)}/judges`
  const evaluated = yield* evaluate(
    { name: suite.name, cases: cases.map((one) => one.case) },
    [named],
    { ...around, judges },
    { concurrency: 1 }
  )
  const verdicts: Verdicts = {
    cases: cases.map(({ index }, at) => ({
      index,
      assertions: evaluated.cases[at]!.matches[0]!.assertions.map(({ class: kind, verdict: { outcome, reason } }) => ({
        class: kind,
        outcome,
        ...(reason === undefined ? {} : { reason })
      }))
    }))
  }
  // What an engine or a script could not decide this time may be decided the next.
  const whole = verdicts.cases.every(({ assertions }) => assertions.every(({ outcome }) => outcome !== "errored"))
  if (whole) yield* store.keep(cell, suiteKey, verdicts)
  return verdicts
})

const notBegun = (cell: Cell): CellOutcome => ({ _tag: "NotDone", cell, code: 4, message: "not begun" })

/** Outcomes in the order of the cells. */
export const run = Effect.fnUntraced(function* <E, R>(
  cells: ReadonlyArray<Cell>,
  contest: Contest<E, R>,
  options: BenchOptions
): Effect.fn.Return<ReadonlyArray<CellOutcome>, BenchError | E, R> {
  const { onDone, store } = options
  const casesFor = indexOf(options.suite)
  const outcomes = new Map<Cell, CellOutcome>()
  const settle = (outcome: CellOutcome): void => {
    outcomes.set(outcome.cell, outcome)
    onDone?.(outcome, outcomes.size, cells.length)
  }
  const judged = (cell: Cell, done: Done, cached: boolean) =>
    Effect.map(verdictsOf(options, cell, done, casesFor), (verdicts) =>
      settle({ _tag: "Done", cell, done, verdicts, cached })
    )
  const open = new Map<string, Cell>()
  for (const cell of cells) {
    const done = yield* store.find(cell)
    if (done !== undefined) yield* judged(cell, done, true)
    // Of cells that are the same by content one is run.
    else if (!open.has(cell.key)) open.set(cell.key, cell)
  }
  const each = Effect.fnUntraced(function* <R2>(cell: Cell, runCell: Run<R2>): Effect.fn.Return<void, BenchError, R2> {
    const result = yield* runCell(cell, yield* store.begin(cell))
    if (result._tag === "NotDone") return settle({ ...result, cell })
    const { _tag: _, ...ran } = result
    yield* judged(cell, yield* store.complete(cell, ran), false)
  })
  const left = [...open.values()]
  for (const contestant of new Set(left.map((cell) => cell.contestant))) {
    const own = left.filter((cell) => cell.contestant === contestant)
    yield* contest(contestant, own, each)
  }
  for (const cell of cells) {
    const twin = outcomes.get(open.get(cell.key) ?? cell)
    if (!outcomes.has(cell) && twin !== undefined) settle({ ...twin, cell })
  }
  return cells.map((cell) => outcomes.get(cell) ?? notBegun(cell))
})

/** Cases that name a conversation none of the prompts is called. */
export const missingNames = ({ cases }: Suite, names: ReadonlySet<string>): ReadonlyArray<string> =>
  cases.flatMap(({ name }) => (name === undefined || names.has(name) ? [] : [name]))

/** Assertions whose decision is not in the conversation alone: what they read belongs to the name of the suite. */
export const pathsIn = ({ cases }: Suite): ReadonlyArray<string> =>
  cases.flatMap(({ assertions }) =>
    assertions.flatMap((one: Assertion) =>
      (one.type === "script" || one.type === "program") && "path" in one.script ? [one.script.path] : []
    )
  )

/** How a case is called in messages. */
export const caseName = ({ cases }: Suite, index: number): string => cases[index]?.name ?? unnamed(index)
