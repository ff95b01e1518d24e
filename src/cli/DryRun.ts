/**
 * What a dry run would have done: each call that was legal and was not executed, with its price, what it would have touched,
 * and what would have changed. Read off the run's events and the tools' own contracts; nothing is performed.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { AgentEvent } from "../effects/AgentEvent.ts"
import { look, needs, prices } from "../effects/legality/ContractTerms.ts"
import { gatesOf, type TaskProfile } from "../effects/Profile.ts"
import type { JsonObject } from "../tools/JsonText.ts"
import type { RegisteredTool, Registry, ValidatedArguments } from "../tools/Registry.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import { block, count, cut, inline } from "./Printable.ts"
import type { Screen } from "./Screen.ts"

/** One effect that did not happen. */
export interface Would {
  readonly call: string
  readonly tool: string
  readonly risk: string
  readonly arguments: JsonObject
  /** In units of value. */
  readonly cost: number
  readonly hazard: number
  /** `write artifact:report.md`; undefined where the tool does not say. */
  readonly touches: ReadonlyArray<string> | undefined
  /** Would somebody have been asked? */
  readonly asks: boolean
  readonly preview: string | undefined
}

/** Keeps the calls of a dry run as they go by. */
export class DryRun {
  readonly #proposed = new Map<string, JsonObject>()
  readonly #held: Array<{ readonly call: string; readonly tool: string }> = []

  readonly event = (event: AgentEvent): void => {
    if (event._tag === "CallProposed") this.#proposed.set(event.callId, event.arguments)
    if (event._tag !== "CallRejected" || event.answer.ok || event.answer.kind !== "dry_run") return
    this.#held.push({ call: event.callId, tool: event.tool })
  }

  /** The effects there would have been, in order. */
  readonly would = (
    registry: Registry,
    profile: TaskProfile,
    settings: ToolSettings
  ): Effect.Effect<ReadonlyArray<Would>> =>
    Effect.map(
      Effect.forEach(this.#held, ({ call, tool: name }) => {
        const tool = registry.get(name)
        const checked = tool?.check(this.#proposed.get(call) ?? {})
        // It was legal a moment ago.
        if (tool === undefined || checked === undefined || Result.isFailure(checked)) return Effect.succeed([])
        return Effect.map(wouldOf(call, tool, checked.success, profile, settings), (one) => [one])
      }),
      (found) => found.flat()
    )
}

const wouldOf = Effect.fnUntraced(function* (
  call: string,
  tool: RegisteredTool,
  args: ValidatedArguments,
  profile: TaskProfile,
  settings: ToolSettings
): Effect.fn.Return<Would> {
  const { contract, terms } = tool
  const { cost, hazard } = Result.getOrElse(prices(tool, args), () => ({ cost: Number.NaN, hazard: Number.NaN }))
  const touches = contract.functions.includes("touches")
    ? Result.getOrElse(needs(tool, args), () => ({ touches: [] })).touches.map(
        ({ resource, verb }) => `${verb} ${resource}`
      )
    : undefined
  const { preview } = terms
  const shown = preview === undefined ? undefined : yield* look("preview", () => preview(args), settings)
  return {
    call,
    tool: tool.name,
    risk: contract.risk,
    arguments: args.effective,
    cost,
    hazard,
    touches,
    asks: gatesOf(profile, contract).approve,
    preview: shown === undefined || Result.isFailure(shown) ? undefined : shown.success
  }
})

/** The same in the JSON document of a run. */
export const wouldDocument = (effects: ReadonlyArray<Would>) =>
  effects.map(({ preview, touches, ...rest }) => ({ ...rest, touches: touches ?? null, preview: preview ?? null }))

const number = (value: number): string => String(Math.round(value * 1000) / 1000)

const sum = (effects: ReadonlyArray<Would>, of: (one: Would) => number): string =>
  number(effects.reduce((total, one) => total + of(one), 0))

const argumentsText = (args: JsonObject): string =>
  Object.entries(args)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join("  ")

/** Lines of a preview in the table; `--json` has all that the tool gave. */
const previewLines = 10

const shortened = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length <= previewLines ? lines : [...lines.slice(0, previewLines - 1), "… (more with --json)"]

/** The table at the end of a dry run. */
export const wouldLines = (effects: ReadonlyArray<Would>, { columns, paint }: Screen): ReadonlyArray<string> => {
  if (effects.length === 0) return [paint.bold("dry run: there would have been no effects")]
  const widest = Math.min(24, Math.max(4, ...effects.map(({ tool }) => tool.length)))
  const row = (cells: readonly [string, string, string, string]): string => {
    const [tool, cost, hazard, would] = cells
    const before = `  ${cut(tool, widest).padEnd(widest)}  ${cost.padStart(6)}  ${hazard.padStart(6)}  `
    return before + cut(would, columns - before.length)
  }
  const summary = `${count(effects.length, "effect")}, cost ${sum(effects, (one) => one.cost)}, hazard ${sum(effects, (one) => one.hazard)}; nothing was done`
  return [
    paint.bold("dry run: what would have been done"),
    paint.dim(row(["TOOL", "COST", "HAZARD", "WOULD"])),
    ...effects.flatMap((one) => {
      const what = (one.touches ?? ["act on what it does not say"]).join(", ")
      const would = `${what === "" ? "touch nothing" : what}${one.asks ? " (asks first)" : ""}`
      const preview = one.preview === undefined ? [] : shortened(block(one.preview).split("\n"))
      return [
        row([one.tool, number(one.cost), number(one.hazard), would]),
        paint.dim(`    ${cut(argumentsText(one.arguments), columns - 4)}`),
        ...preview.map((line) => {
          const text = `    ${cut(line, columns - 4)}`
          return line.startsWith("+") ? paint.green(text) : text
        })
      ]
    }),
    inline(summary)
  ]
}
