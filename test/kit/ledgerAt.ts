/** Ledgers that are shared: by file or by address, in this process and in others. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import { layerPostgres, type PostgresOptions } from "../../src/actors/EffectLedgerPostgres.ts"
import { layerSqlite, type SqliteOptions } from "../../src/actors/EffectLedgerSqlite.ts"

export type LedgerOptions = Partial<SqliteOptions & PostgresOptions>

export const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-ledger-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** The ledger in a file, or at an address. */
export const layerAt = (place: string, options: LedgerOptions = {}): Layer.Layer<EffectLedger, LedgerError> =>
  place.startsWith("postgres:") ? layerPostgres({ ...options, url: place }) : layerSqlite({ ...options, path: place })

/** A ledger of its own at that place, closed when `body` ends. */
export const open = <A, E, R>(
  place: string,
  body: (ledger: EffectLedger["Service"]) => Effect.Effect<A, E, R>,
  options?: LedgerOptions
) => Effect.provide(Effect.flatMap(EffectLedger, body), layerAt(place, options), { local: true })

const program = join(import.meta.dirname, "ledgerProcess.ts")

export interface Child {
  /** The next line it says; undefined once it has ended. */
  readonly line: Effect.Effect<string | undefined>
  readonly tell: Effect.Effect<void>
  readonly kill: Effect.Effect<void>
}

/** A process that does what `ledgerProcess.ts` knows under this name. */
export const child = (...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync((): Child => {
      const started = spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] })
      const lines = createInterface({ input: started.stdout! })[Symbol.asyncIterator]()
      const exit = new Promise<void>((resolve) => started.once("exit", () => resolve()))
      return {
        line: Effect.promise(async () => (await lines.next()).value as string | undefined),
        tell: Effect.sync(() => void started.stdin!.write("go\n")),
        kill: Effect.suspend(() => {
          started.kill("SIGKILL")
          return Effect.promise(() => exit)
        })
      }
    }),
    ({ kill }) => kill
  )
