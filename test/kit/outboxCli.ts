/** The command line with the tools of the outbox in place of those that come with Writ: a program of its own. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { command, main } from "../../src/cli/Main.ts"
import { Provisions } from "../../src/cli/Provisions.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { registry } from "./outbox.ts"

const toolkit = new URL("outbox.ts", import.meta.url)

main(
  command(process.argv.slice(2)).pipe(
    Effect.provideService(Provisions, {
      tools: registry,
      services: (options) => Wiring.layer({ ...options, toolkit })
    }),
    Effect.provide(NodeServices.layer)
  )
)
