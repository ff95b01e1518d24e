/**
 * Runs the cells of one contestant: as files of conversations are run, with one model in memory for all of them. Cells know nothing
 * of each other: each has a ledger of its own, so that an effect of one is not taken for that of another.
 */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as EffectLedger from "../actors/EffectLedger.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import * as ToolPool from "../actors/ToolPool.ts"
import * as Advertised from "../effects/conversation/Advertised.ts"
import type { Conversation } from "../effects/conversation/Conversation.ts"
import type { Fixture } from "../effects/conversation/Fixture.ts"
import type { BenchError, Contest, RunResult } from "../effects/eval/bench/Bench.ts"
import type { Cell } from "../effects/eval/bench/Cell.ts"
import type { CellStore } from "../effects/eval/bench/CellStore.ts"
import * as Recorded from "../effects/eval/external/Recorded.ts"
import { Approval } from "../effects/Policy.ts"
import type { Resolved } from "../effects/Settings.ts"
import * as Wiring from "../effects/Wiring.ts"
import * as Families from "../engine/codecs/Families.ts"
import type { Registry } from "../tools/Registry.ts"
import { approverFor } from "./Approvers.ts"
import type { BenchPolicy, Player } from "./BenchInputs.ts"
import { type FileResult, runFile } from "./ConversationRun.ts"
import * as FixtureFile from "./FixtureFile.ts"
import { choose } from "./ModelChoice.ts"
import { snake } from "./Report.ts"
import { asResult, layerFor, optionsOf, type Tools } from "./runConversation.ts"
import type { Screen } from "./Screen.ts"

export interface RunnerOptions {
  readonly players: ReadonlyArray<Player>
  readonly policies: ReadonlyArray<BenchPolicy>
  readonly base: Resolved
  readonly tools: Tools
  /** Calls are looked at and not carried out, and one turn is asked for. */
  readonly recorded: boolean
  readonly store: CellStore
  /** Where the records of the runs go. */
  readonly records: string
  readonly parallel: number
  readonly screen: Screen
  readonly onBegin: (cell: Cell) => void
  /** Ends what is under way. */
  readonly cancels: Set<Effect.Effect<void>>
  readonly stopped: () => boolean
}

const policyOf = ({ policies }: RunnerOptions, cell: Cell): Resolved =>
  policies.find(({ policy }) => policy.name === cell.policy.name)!.resolved

/** The codec of each policy, by its name. */
const codecsOf = Effect.fnUntraced(function* ({ policies }: RunnerOptions, { source }: Player) {
  const codecs = new Map<string, string>()
  for (const { policy, resolved } of policies) {
    const { settings } = resolved
    const codec =
      source._tag === "Script"
        ? Result.getOrThrow(Families.byId(settings.codec ?? "qwen2.5")).id
        : (yield* choose({ ...settings, model: source.model === undefined ? undefined : source.path }, () => {})).codec
    codecs.set(policy.name, codec)
  }
  return codecs
})

const fixtureFor = Effect.fnUntraced(function* ({ source }: Player, { prompt }: Cell) {
  if (source._tag === "Model") return undefined
  return yield* FixtureFile.read(yield* FixtureFile.fileFor(source.path, `${prompt.name}.yaml`))
})

const toolsOf = (
  { recorded, tools }: RunnerOptions,
  { meta }: Conversation,
  fixture: Fixture | undefined,
  { prompt }: Cell
) => {
  if (fixture?.tools !== undefined) return Effect.succeed(undefined)
  return recorded ? Recorded.registryOf(meta, prompt.label) : Advertised.registryOf(meta, tools.all, prompt.label)
}

const acts = (tools: Registry | undefined): boolean =>
  tools?.tools.some(({ contract }) => contract.risk !== "read") === true

/** A cell that acts and is stopped goes on with what it has done; one that only reads has nothing to remember. */
const ledgerFor = (
  { store }: RunnerOptions,
  cell: Cell,
  tools: Registry | undefined
): Layer.Layer<EffectLedger.EffectLedger, LedgerError> =>
  acts(tools) ? Wiring.layerLedgerAt(join(store.directory(cell), "ledger.sqlite")) : EffectLedger.layerMemory()

const resultOf = ({ code, message, stop, toolCalls, turns }: FileResult): RunResult => {
  const ran = { message, turns, tool_calls: toolCalls }
  if (stop === undefined) {
    return code === 0 ? { _tag: "Ran", stop: "complete_before", ...ran } : { _tag: "NotDone", code, message }
  }
  // What the engine, the record or the person at the keyboard ended says nothing about the model.
  return stop._tag === "Failed" || stop._tag === "Cancelled" || stop._tag === "Escalated"
    ? { _tag: "NotDone", code, message }
    : { _tag: "Ran", stop: snake(stop._tag), ...ran }
}

const settingsOf = (options: RunnerOptions, cell: Cell) => {
  const resolved = policyOf(options, cell)
  const settings = { ...resolved.settings, seed: cell.seed, runDir: options.records }
  const given = optionsOf({ resolved: { ...resolved, settings }, tools: options.tools })
  return options.recorded ? { ...given, limits: { ...given.limits, modelTurns: 1 } } : given
}

const runCell =
  (options: RunnerOptions, player: Player, codecs: ReadonlyMap<string, string>) =>
  (cell: Cell, conversation: Conversation) =>
    Effect.gen(function* () {
      if (options.stopped()) return { _tag: "NotDone", code: 4, message: "not begun: the command was stopped" } as const
      options.onBegin(cell)
      let own: Effect.Effect<void> | undefined
      const onCancel = (cancel: Effect.Effect<void>): void => {
        if (own !== undefined) options.cancels.delete(own)
        own = cancel
        options.cancels.add(cancel)
      }
      const running = Effect.gen(function* () {
        const fixture = yield* fixtureFor(player, cell)
        const tools = yield* toolsOf(options, conversation, fixture, cell)
        const job = {
          path: options.store.file(cell),
          conversation,
          identity: `${cell.key}/${cell.prompt.name}.yaml`,
          fixture,
          tools,
          codec: codecs.get(cell.policy.name)!,
          model: cell.contestant.name,
          answer: undefined,
          replay: false
        }
        const filled = runFile(job, { ...settingsOf(options, cell), onCancel })
        const apart = Effect.provide(filled, ledgerFor(options, cell, tools))
        return yield* options.recorded ? Effect.provide(apart, ToolPool.layerInline()) : apart
      })
      const result = yield* asResult(cell.prompt.label, running)
      if (own !== undefined) options.cancels.delete(own)
      return resultOf(result)
    })

const contestants = Effect.fnUntraced(function* (
  options: RunnerOptions,
  name: string,
  cells: ReadonlyArray<Cell>,
  each: Parameters<Contest<never, never>>[2]
) {
  const { base, parallel, records, screen, tools } = options
  const player = options.players.find(({ contestant }) => contestant.name === name)!
  const settings = { ...base.settings, ledger: "memory", runDir: records }
  const { source } = player
  if (source._tag === "Model") screen.progress(`loading ${name} …`)
  const codecs = yield* codecsOf(options, player)
  const layer = yield* layerFor(
    { flags: { replay: false }, resolved: { ...base, settings }, tools, parallel },
    source._tag === "Model" ? source.path : undefined
  )
  yield* Effect.forEach(cells, (cell) => each(cell, runCell(options, player, codecs)), {
    concurrency: parallel,
    discard: true
  }).pipe(Effect.provide(layer), Effect.provideService(Approval, approverFor(base.settings.approve, undefined)))
})

/** A model that cannot be loaded is the outcome of each of its cells. */
export const contest =
  (options: RunnerOptions): Contest<BenchError, Effect.Services<ReturnType<typeof contestants>>> =>
  (contestant, cells, each) => {
    const failed =
      (code: number) =>
      ({ message }: { readonly message: string }) =>
        Effect.forEach(cells, (cell) => each(cell, () => Effect.succeed({ _tag: "NotDone", code, message })), {
          discard: true
        })
    return contestants(options, contestant.name, cells, each).pipe(
      Effect.catchTags({ EngineError: failed(1), LedgerError: failed(1), UsageError: failed(2) })
    )
  }
