/** Billing services, and processes that bill with them and die; what is left in the books afterwards. */
import { spawn } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { basename, join } from "node:path"
import { createInterface } from "node:readline"
import * as Effect from "effect/Effect"
import { type Verdict, validateFile } from "../../src/effects/trace/TraceValidator.ts"
import type { LedgerMode } from "../../src/tools/Contract.ts"
import type { Ended, Job } from "./billingChild.ts"
import { temporary } from "./crash.ts"
import { partFiles } from "./crashParts.ts"

/** Does the service make one invoice per key, or one per request? */
export type Service = "keyed" | "plain"

/** Both services, for as long as the scope is open. */
export const services = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
    const server = spawn(process.execPath, [join(import.meta.dirname, "billingServer.ts")], {
      stdio: ["pipe", "pipe", "inherit"]
    })
    createInterface({ input: server.stdout }).once("line", (port) =>
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close: () => server.stdin.end() }))
    )
  }),
  ({ close }) => Effect.sync(close)
)

const environment = (program: string) => ({
  PATH: process.env["PATH"],
  NODE_COMPILE_CACHE: join(program, "..", "cache")
})

/** One process, to its end. */
export const bill = (program: string, job: Job): Effect.Effect<Ended | "killed"> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [program, JSON.stringify(job)], {
      stdio: ["ignore", "pipe", "pipe"],
      env: environment(program)
    })
    let out = ""
    let errors = ""
    child.stdout.on("data", (chunk) => {
      out += chunk
    })
    child.stderr.on("data", (chunk) => {
      errors += chunk
    })
    child.on("close", (_code, signal) => {
      if (signal === "SIGKILL") resume(Effect.succeed("killed"))
      else if (out === "") resume(Effect.die(new Error(`the process failed at ${job.where}: ${errors}`)))
      else resume(Effect.sync(() => JSON.parse(out) as Ended))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** What is left when all is over. */
export interface Afterwards {
  readonly ended: Ended
  readonly invoices: number
  readonly verdicts: ReadonlyArray<Verdict>
}

const invoicesOf = (directory: string, service: string): Effect.Effect<number> =>
  Effect.promise(async () => {
    const own = join(directory, "invoices")
    const books = (await (await fetch(service)).json()) as ReadonlyArray<unknown>
    return books.length + (existsSync(own) ? readdirSync(own).length : 0)
  })

/** Processes in a fresh directory, one after the other; all but the last are told where to die and must. */
export const lives = (
  program: string,
  url: string,
  mode: LedgerMode,
  service: Service,
  deaths: ReadonlyArray<string>
): Effect.Effect<Afterwards> =>
  Effect.scoped(
    Effect.gen(function* () {
      const directory = yield* temporary("writ-billing-")
      const job = { directory, mode, service: `${url}/${service}/${basename(directory)}/invoices` }
      for (const where of deaths) {
        const said = yield* bill(program, { ...job, where })
        if (said !== "killed") return yield* Effect.die(new Error(`nothing died at ${where}: ${JSON.stringify(said)}`))
      }
      const ended = yield* bill(program, { ...job, where: "never" })
      if (ended === "killed") return yield* Effect.die(new Error("somebody killed the last process"))
      const verdicts = yield* Effect.forEach(partFiles(directory), (file) => Effect.orDie(validateFile(file)))
      return { ended, verdicts, invoices: yield* invoicesOf(directory, job.service) }
    })
  )

/** As many processes at once, which share one ledger and one book, each with as many deliveries of the same order. */
export const together = (program: string, url: string, processes: number, deliveries: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const directory = yield* temporary("writ-billing-")
      const service = `${url}/plain/${basename(directory)}/invoices`
      const job: Job = { directory, mode: "observe", service, where: "never", deliveries }
      const started = Array.from({ length: processes }, () => {
        const child = spawn(process.execPath, [program, JSON.stringify(job)], {
          stdio: ["pipe", "pipe", "inherit"],
          env: environment(program)
        })
        return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
      })
      const line = ({ lines }: (typeof started)[number]) =>
        Effect.promise(async () => (await lines.next()).value as string)
      yield* Effect.forEach(started, line, { concurrency: "unbounded" })
      for (const { child } of started) child.stdin.end("go\n")
      const said = yield* Effect.forEach(started, line, { concurrency: "unbounded" })
      return {
        ended: said.flatMap((text) => JSON.parse(text) as ReadonlyArray<Ended>),
        invoices: yield* invoicesOf(directory, service)
      }
    })
  )
