/** Who decides about calls that need an approval: a rule, or the person at the terminal. */

import { createInterface } from "node:readline"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { type ApprovalRequest, type Approver, allowAll, type Decision, denyAll, suspendAll } from "../effects/Policy.ts"
import type { ApproveMode } from "../effects/SettingFields.ts"
import { block } from "./Printable.ts"
import type { Screen } from "./Screen.ts"

/** Prints a question and waits for one line. `undefined`: there will be none. */
export type Ask = (question: string) => Effect.Effect<string | undefined>

const question = ({ arguments: args, risk, tool }: ApprovalRequest, screen: Screen): string =>
  [
    "",
    `  ${screen.paint.yellow("?")} The model wants to call ${screen.paint.bold(tool)}, risk: ${risk}.`,
    // The whole of it: what is approved must have been seen.
    block(JSON.stringify(args, undefined, 2)).replace(/^/gm, "    "),
    "  Allow this call? [y]es, [n]o, [s]top the run: "
  ].join("\n")

const decisionOf = (answer: string | undefined): Decision | undefined => {
  switch (answer?.trim().toLowerCase()) {
    case "y":
    case "yes":
      return "allow"
    case "s":
    case "stop":
      return "suspend"
    case "n":
    case "no":
    case undefined:
      return "deny"
    default:
      return undefined
  }
}

/** Asks until the answer is one; no answer is no. One question at a time. */
export const askWith = (ask: Ask, screen: Screen): Approver => {
  const turn = Semaphore.makeUnsafe(1)
  const decide = (request: ApprovalRequest): Effect.Effect<Decision> =>
    Effect.flatMap(ask(question(request, screen)), (answer) => {
      const decision = decisionOf(answer)
      return decision === undefined ? decide(request) : Effect.succeed(decision)
    })
  return { name: "person", decide: (request) => turn.withPermit(decide(request)) }
}

/** Lines from standard input. Not in raw mode, so Ctrl-C stays a signal. */
const askTerminal =
  (screen: Screen): Ask =>
  (text) =>
    Effect.callback<string | undefined>((resume) => {
      screen.write(text)
      const lines = createInterface({ input: process.stdin, terminal: false })
      let answer: string | undefined
      lines.once("line", (line) => {
        answer = line
        lines.close()
      })
      lines.once("close", () => {
        process.stdin.pause()
        resume(Effect.succeed(answer))
      })
      return Effect.sync(() => lines.close())
    })

/** The approver of a run. Asking needs a terminal on both ends; without one the answer is no. */
export const approverFor = (mode: ApproveMode, screen: Screen | undefined): Approver => {
  if (mode === "all") return allowAll
  if (mode === "suspend") return suspendAll
  const interactive = mode === "ask" && screen !== undefined && process.stdin.isTTY && process.stdout.isTTY
  return interactive ? askWith(askTerminal(screen), screen) : denyAll
}
