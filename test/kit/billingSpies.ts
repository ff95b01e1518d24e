/** Everything a call could write to, watched: files, network, artifact store, ledger, the outside world, the record of handlers. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../../src/actors/EffectLedger.ts"
import type { PlainTerms } from "../../src/tools/Contract.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import type { Terms } from "../../src/tools/Terms.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"

/** Writes that were seen, by where. Files are listed, not counted. */
export interface Writes extends Counts {
  files: ReadonlyArray<string>
}

export const untouched: Writes = { files: [], requests: 0, artifacts: 0, ledger: 0, handlers: 0 }

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-spies-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Somebody who can be reached, and counts who reaches them. */
const listener = (seen: () => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
      const server = createServer((_, response) => {
        seen()
        response.end("ok")
      })
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({ port: (server.address() as AddressInfo).port, close: () => server.close() }))
      )
    }),
    ({ close }) => Effect.sync(close)
  )

/** What the world looks like to the terms of the tools below. */
export interface Mood {
  ready: boolean
  /** What breaks in the contract itself. */
  fault: "pre" | "cost" | "hazard" | "touches" | "key" | undefined
}

const args = Schema.Struct({ name: Schema.NonEmptyString, amount: Schema.Int.check(Schema.isGreaterThan(0)) })
type Args = typeof args.Type

const terms = (mood: Mood): PlainTerms & Terms<Args, string> => {
  const broken = (term: Mood["fault"]): void => {
    if (mood.fault === term) throw new Error("a bug in the contract")
  }
  return {
    risk: "external",
    ledger: "external",
    retry: "safe",
    reversible: true,
    evidence: { source: "self", describes: "its own answer" },
    post: "result",
    scopes: ["act"],
    touches: ({ name }) => {
      broken("touches")
      return [{ verb: "write", resource: `thing:${encodeURIComponent(name).replaceAll("%", "_")}` }]
    },
    pre: () => {
      broken("pre")
      return Effect.succeed(mood.ready ? [] : [{ reason: "not ready" }])
    },
    cost: ({ amount }) => {
      broken("cost")
      return mood.fault === "hazard" ? Number.NaN : amount > 1_000 ? Infinity : 0
    },
    key: ({ name }) => {
      broken("key")
      return `thing:${name}`
    }
  }
}

const names = ["write_file", "post", "publish", "invoice"] as const

interface Counts {
  requests: number
  artifacts: number
  ledger: number
  handlers: number
}

const counted = <A, E, R>(counts: Counts, where: keyof Counts, effect: Effect.Effect<A, E, R>) =>
  Effect.andThen(
    Effect.sync(() => void counts[where]++),
    effect
  )

/** The tools, each of which leaves something at its own place. */
const watched = (mood: Mood, counts: Counts, root: string, port: number) => {
  const stated = names.map((name) =>
    Contract.declare(Tool.make(name, { description: "Acts.", parameters: args, success: Schema.String }), terms(mood))
  )
  const acted = <A>(effect: Effect.Effect<A, never, ToolContext>) => counted(counts, "handlers", effect)
  const write = ({ name }: Args) =>
    Effect.sync(() => {
      writeFileSync(join(root, encodeURIComponent(name).slice(0, 100)), name)
      return "written"
    })
  return Registry.fromToolkit(Toolkit.make(...stated), {
    write_file: (params) => acted(write(params)),
    post: () =>
      acted(
        Effect.as(
          Effect.promise(() => fetch(`http://127.0.0.1:${port}/`)),
          "posted"
        )
      ),
    publish: ({ name }) =>
      acted(
        Effect.map(ToolContext, ({ produce }) => {
          produce({ name: "thing.txt", mediaType: "text/plain", bytes: Buffer.from(name) })
          return "published"
        })
      ),
    invoice: () => acted(Effect.succeed("invoiced"))
  })
}

const ledgerOf = (counts: Counts) =>
  Layer.effect(
    EffectLedger.EffectLedger,
    Effect.map(EffectLedger.EffectLedger, (own) => ({
      ...own,
      begin: (intent) => counted(counts, "ledger", own.begin(intent)),
      retake: (intent) => counted(counts, "ledger", own.retake(intent)),
      settle: (key, outcome) => counted(counts, "ledger", own.settle(key, outcome)),
      late: (key, outcome) => counted(counts, "ledger", own.late(key, outcome)),
      resolve: (key, resolution) => counted(counts, "ledger", own.resolve(key, resolution))
    }))
  ).pipe(Layer.provide(EffectLedger.layerMemory()))

const storeOf = (counts: Counts) =>
  Layer.effect(
    ArtifactStore.ArtifactStore,
    Effect.map(ArtifactStore.ArtifactStore, (own) => ({
      ...own,
      put: (run, artifact) => counted(counts, "artifacts", own.put(run, artifact))
    }))
  ).pipe(Layer.provide(ArtifactStore.layerMemory))

/** One tool per kind of write, watched; `writes` reads the counters. */
export const spies = Effect.fnUntraced(function* () {
  const root = yield* directory
  const counts: Counts = { requests: 0, artifacts: 0, ledger: 0, handlers: 0 }
  const { port } = yield* listener(() => void counts.requests++)
  const mood: Mood = { ready: true, fault: undefined }
  const registry = yield* watched(mood, counts, root, port)
  const writes = (): Writes => ({ ...counts, files: readdirSync(root) })
  return { registry, mood, writes, services: Layer.merge(ledgerOf(counts), storeOf(counts)), names }
})
