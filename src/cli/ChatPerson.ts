/** A chat with a person at a terminal: asks for a message, shows what comes of it, until there is no message any more. */
import * as Effect from "effect/Effect"
import { Approval, type Approver } from "../effects/Policy.ts"
import type { RunOptions } from "../effects/Run.ts"
import type { ApproveMode } from "../effects/SettingFields.ts"
import { approverFor, askWith } from "./Approvers.ts"
import { type Conversation, linesFor, unknownLines } from "./ChatAnswers.ts"
import * as ChatInput from "./ChatInput.ts"
import type { ChatView } from "./ChatView.ts"
import { read, spelled } from "./ChatWords.ts"
import { endWith } from "./Ending.ts"
import { block } from "./Printable.ts"
import type { Screen } from "./Screen.ts"

export interface AtTerminal extends Conversation {
  readonly screen: Screen
  readonly view: ChatView
  readonly options: RunOptions
  readonly approve: ApproveMode
}

/** Ctrl-C reaches a line editor as a key. Everybody else knows it as a signal. */
const interruptFor = (screen: Screen) => (): void => {
  screen.progress("")
  process.kill(process.pid, "SIGINT")
}

const approverOf = ({ approve, screen, view }: AtTerminal, input: ChatInput.ChatInput): Approver =>
  approve === "ask" ? askWith(input.ask, { screen, caughtUp: view.caughtUp }) : approverFor(approve, undefined)

/** One message to its end; true if the program is to stop as well. */
const said = Effect.fnUntraced(function* ({ chat, options, screen, view }: AtTerminal, message: string) {
  const { leave, outcome } = yield* chat.say(message, options, view.event)
  view.ended(outcome)
  screen.line()
  return leave
})

/** Whatever one message fails of, the next may do better. */
const saidOrFailed = (at: AtTerminal, message: string) =>
  Effect.catch(said(at, message), ({ message }) =>
    Effect.sync(() => {
      at.screen.line(`${at.screen.paint.red(block(message))}\n`)
      return false
    })
  )

export const converse = Effect.fnUntraced(function* (at: AtTerminal) {
  const { screen } = at
  const words = spelled
  const input = yield* ChatInput.open({
    screen,
    prompt: screen.paint.bold("> "),
    words,
    interrupt: interruptFor(screen)
  })
  const withApprover = Effect.provideService(Approval, approverOf(at, input))
  while (true) {
    const line = yield* input.message
    if (line === undefined) return
    const asked = read(line)
    if (asked._tag === "Message") {
      if (yield* withApprover(saidOrFailed(at, asked.text))) return yield* endWith(4)
    } else if (asked._tag === "Exit") return
    else {
      const lines = asked._tag === "Word" ? yield* linesFor(asked.word, at, screen) : unknownLines(asked.word, screen)
      screen.line(`${lines.join("\n")}\n`)
    }
  }
})
