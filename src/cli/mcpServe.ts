/** `writ mcp serve`: tools as an MCP server on standard input and output. Nothing else is ever written to standard output. */
import { resolve } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Approval, allowAll, denyAll } from "../effects/Policy.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { gatesOf, gatesProblem, load, type RawSettings, type Resolved } from "../effects/Settings.ts"
import { Model } from "../engine/Model.ts"
import * as PeerModel from "../engine/PeerModel.ts"
import { pick as pickTools, type Registry } from "../tools/Registry.ts"
import type { WebSettings } from "../tools/web/WebSettings.ts"
import { usage } from "./Ending.ts"
import * as FileToolSource from "./FileToolSource.ts"
import { checkLedgerPlace } from "./LedgerPlace.ts"
import * as McpSource from "./McpSource.ts"
import { problemAt } from "./Places.ts"
import { Provisions } from "./Provisions.ts"
import * as ToolEnvironment from "./ToolEnvironment.ts"
import * as WebSource from "./WebSource.ts"

export interface McpServeFlags {
  readonly settings: RawSettings
}

const caller = "mcp-client"

/** A program that serves has no model to be asked for. */
const noModel = Layer.succeed(Model, PeerModel.make({ name: caller, next: Effect.never, heard: () => {} }))

const check = ({ approve, workspace, ...settings }: Settings) => {
  const problem = problemAt(workspace, "Directory")
  if (problem !== undefined) return usage(`--workspace ${workspace}: ${problem}`)
  const gates = gatesProblem({ approve, workspace, ...settings })
  return gates === undefined ? Effect.void : usage(gates)
}

/** Nobody can be asked: the terminal is the protocol's. */
const approverOf = ({ origins, settings }: Resolved) =>
  settings.approve === "all" && origins.approve !== "default" ? allowAll : denyAll

const optionsOf = ({ origins, settings }: Resolved, web: WebSettings | undefined) => ({
  caller,
  limits: {
    toolMillis: settings.toolTimeout,
    ...(origins.maxResultBytes === "default" ? {} : { resultBytes: settings.maxResultBytes })
  },
  settings: {
    workspace: resolve(settings.workspace),
    fixtures: settings.fixture,
    ...(web === undefined ? {} : { web })
  },
  gates: gatesOf(settings),
  trace: { content: settings.traceContent, redact: settings.redact }
})

const withoutQuestions = Effect.fnUntraced(function* (tools: Registry, named: boolean) {
  const { servable } = yield* Effect.promise(() => import("../effects/McpServe.ts"))
  const asking = tools.tools.filter((tool) => !servable(tool)).map(({ name }) => name)
  if (named && asking.length > 0) {
    return yield* usage(`--tools ${asking[0]}: it asks the user, and a client of MCP asks its own`)
  }
  return yield* pickTools(
    tools,
    tools.tools.filter(servable).map(({ name }) => name)
  )
})

export const serve = (flags: McpServeFlags) =>
  Effect.scoped(
    Effect.gen(function* () {
      const resolved = yield* load(flags.settings)
      const { origins, settings } = resolved
      yield* check(settings)
      yield* checkLedgerPlace(settings)
      const { services } = yield* Provisions
      const mcp = yield* McpSource.open(settings)
      const toolEnv = yield* ToolEnvironment.granted(settings)
      const files = yield* FileToolSource.open(settings.toolsDir, toolEnv)
      const picked = yield* FileToolSource.registryOf(resolved, mcp, files)
      const registry = yield* withoutQuestions(picked, origins.tools !== "default")
      const web = yield* WebSource.open(resolved, registry)
      const layer = services({
        engine: noModel,
        modelHash: false,
        inlineTools: registry.tools.length === 0,
        toolEnv,
        ...(settings.ledger === undefined ? {} : { ledger: settings.ledger })
      })
      const withFiles = files === undefined ? layer : files.layer(layer)
      const Serving = yield* Effect.promise(() => import("../effects/Serving.ts"))
      const McpServe = yield* Effect.promise(() => import("../effects/McpServe.ts"))
      yield* Console.error(`writ: serving ${registry.tools.length} tools on standard input and output`)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const serving = yield* Serving.open({ tools: registry, ...optionsOf(resolved, web) })
          yield* McpServe.serve(registry, serving)
        })
      ).pipe(
        Effect.provideService(Approval, approverOf(resolved)),
        Effect.provide(mcp === undefined ? withFiles : mcp.layer(withFiles))
      )
    })
  )
