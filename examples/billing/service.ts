/** Starts the fake service in a process of its own, and asks it what is in its books. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

export const faults = ["none", "lost-answer", "down", "accepted-then-fails", "accepted-then-silent"] as const
export type Fault = (typeof faults)[number]

export interface Invoice {
  readonly id: string
  readonly order: string
  readonly cents: number
  readonly status: "issued" | "pending" | "rejected"
}

/** The address of a service that misbehaves as it is told, for as long as the scope is open. */
export const service = (fault: Fault, books: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
        const program = fileURLToPath(new URL("server.ts", import.meta.url))
        const child = spawn(process.execPath, [program, "--fault", fault, "--books", books], {
          stdio: ["pipe", "pipe", "inherit"]
        })
        createInterface({ input: child.stdout }).once("line", (port) =>
          resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close: () => child.stdin.end() }))
        )
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ url }) => url
  )

/** A request that may fail on the way there or on the way back: from here the two look the same. */
export const request = (url: string, init?: RequestInit) =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(url, { ...init, signal })
    return { status: response.status, body: (await response.json()) as unknown }
  })

export const invoicesAt = (url: string) =>
  Effect.map(request(`${url}/invoices`), ({ body }) => body as ReadonlyArray<Invoice>)
