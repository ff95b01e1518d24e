#!/usr/bin/env node
/** The command `writ`. Holds no logic: `cli/Commands.ts` is the command tree, `cli/Main.ts` runs it. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import { command, main } from "./cli/Main.ts"

main(Effect.provide(command(process.argv.slice(2)), NodeServices.layer))
