/** Who decides about calls that need an approval: a decision on record, a rule, or the person at the terminal. */

import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Approvals from "../actors/Approvals.ts"
import {
  type ApprovalRequest,
  type Approver,
  allowAll,
  type Decided,
  type Decision,
  denyAll,
  person,
  suspendAll
} from "../effects/Policy.ts"
import type { ApproveMode } from "../effects/SettingFields.ts"
import { approvalLines } from "./ApprovalView.ts"
import * as Keyboard from "./Keyboard.ts"
import { inline } from "./Printable.ts"
import type { Screen } from "./Screen.ts"
import { wrapped } from "./WordWrap.ts"

/** Prints a question and waits for one line. `undefined`: there will be none. */
export type Ask = (question: string) => Effect.Effect<string | undefined>

const question = (request: ApprovalRequest, { columns, paint }: Screen): string =>
  ["", ...approvalLines(request, paint, columns), "  Allow this call? [y]es, [n]o, [s]top the run: "].join("\n")

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

/** Whoever is asked, and what has to be on the screen before a question about a call. */
export interface Asking {
  readonly screen: Screen
  readonly caughtUp: (callId: string) => Effect.Effect<void>
  /** Of somebody who may be asked at the terminal. */
  readonly keyboard?: Keyboard.Keyboard
}

const noMore = "(Ctrl-D ended the input: this, and everything asked from now on, is taken as no)"

/** Asks until the answer is one; no answer is no, and that none will follow is said once. One question at a time. */
export const askWith = (ask: Ask, { caughtUp, screen }: Asking): Approver => {
  const turn = Semaphore.makeUnsafe(1)
  let over = false
  const again = (text: string): Effect.Effect<Decision> =>
    Effect.flatMap(ask(text), (answer) => {
      if (answer === undefined && !over) {
        over = true
        screen.line(screen.paint.dim(wrapped(`  ${noMore}`, screen.columns)))
      }
      const decision = decisionOf(answer)
      return decision === undefined ? again("  yes, no or stop? ") : Effect.succeed(decision)
    })
  const decide = (request: ApprovalRequest) =>
    Effect.andThen(
      caughtUp(request.callId),
      Effect.suspend(() => again(question(request, screen)))
    )
  return { name: person, decide: (request) => turn.withPermit(decide(request)) }
}

/** Lines from the terminal. What was typed before a question is no answer to it. */
export const askTerminal =
  (screen: Screen, keyboard = Keyboard.make()): Ask =>
  (text) =>
    Effect.suspend(() => {
      screen.hold(true)
      return Effect.tap(
        keyboard.line(() => screen.write(text)),
        // Ctrl-D ends no line: what comes next would take the place of the question.
        (answer) => Effect.sync(() => answer === undefined && screen.write("\n"))
      )
    }).pipe(Effect.ensuring(Effect.sync(() => screen.hold(false))))

const nobodyThere = `writ: nobody can be asked here (there is no terminal), so the answer is no.
      --approve all              allows such calls without asking
      --suspend --trace-content  stops the run before one; then: writ approve RUN`

/** Nobody to ask: the answer is no, and how to get another one is said once. */
const askNobody = (): Approver => {
  let told = false
  return {
    name: denyAll.name,
    decide: ({ callId, tool }) =>
      Effect.suspend(() => {
        const said = `writ: ${inline(tool)} (${callId}) was not allowed`
        const text = told ? said : `${said}\n${nobodyThere}`
        told = true
        return Effect.as(Console.error(text), "deny" as const)
      })
  }
}

/** Somebody at this terminal may be asked. What they type is not shown meanwhile; where no terminal is, nothing is. */
export const askingAt = (screen: Screen, caughtUp: Asking["caughtUp"]): Effect.Effect<Asking, never, Scope.Scope> => {
  const keyboard = Keyboard.make()
  return Effect.as(screen.terminal ? keyboard.quiet : Effect.void, { screen, caughtUp, keyboard })
}

/** The approver of a run. Asking needs a terminal on both ends; without one the answer is no. */
export const approverFor = (mode: ApproveMode, asking: Asking | undefined): Approver => {
  if (mode === "all") return allowAll
  if (mode === "suspend") return suspendAll
  if (mode === "deny") return denyAll
  const interactive = asking !== undefined && process.stdin.isTTY && process.stdout.isTTY
  return interactive ? askWith(askTerminal(asking.screen, asking.keyboard), asking) : askNobody()
}

const passedOver = (found: Approvals.Found, { callId }: ApprovalRequest): string | undefined => {
  if (found._tag === "Expired") {
    return `writ: the approval of ${callId} by ${inline(found.approval.by)} held until ${found.approval.expires_at}; it does not count any more`
  }
  return found._tag === "Other"
    ? `writ: the approval of ${callId} by ${inline(found.approval.by)} is for other arguments; it does not count`
    : undefined
}

/**
 * Answers from the decisions recorded in the run's directory, and asks `otherwise` about the rest: what nobody has decided,
 * what was decided for other arguments, what was allowed too long ago. A record that cannot be read puts the decision off.
 */
export const fromRecord = (directory: string, otherwise: Approver): Approver => ({
  name: otherwise.name,
  decide: (request) =>
    Effect.gen(function* (): Effect.fn.Return<Decision | Decided, Approvals.ApprovalsError> {
      const approvals = yield* Approvals.read(directory)
      const found = Approvals.find(approvals, request, yield* Clock.currentTimeMillis)
      if (found._tag === "Decided") {
        const { by, decision, reason } = found.approval
        return { decision, by, ...(reason === undefined ? {} : { reason }) }
      }
      const said = passedOver(found, request)
      if (said !== undefined) yield* Console.error(said)
      return yield* otherwise.decide(request)
    }).pipe(
      Effect.catchTag("ApprovalsError", ({ message }) =>
        Effect.as(Console.error(`writ: ${message}`), "suspend" as const)
      )
    )
})
