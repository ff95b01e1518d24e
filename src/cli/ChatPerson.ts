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
import { StopSlot } from "./StopRequests.ts"

export interface AtTerminal extends Conversation {
  readonly screen: Screen
  readonly input: ChatInput.ChatInput
  readonly view: ChatView
  readonly options: RunOptions
  readonly approve: ApproveMode
}

/**
 * The line editor, which has the terminal from now on: what is typed before the first prompt is not shown before it. Ctrl-C
 * reaches an editor as a key; everybody else knows it as a signal. One that comes when an answer has just ended was meant
 * for the answer, and ends nothing.
 */
export const editor = (screen: Screen) =>
  Effect.flatMap(StopSlot, (slot) =>
    ChatInput.open({
      screen,
      prompt: screen.paint.bold("> "),
      words: spelled,
      interrupt: (leave) => {
        if (slot.handler === undefined && !leave) return false
        screen.progress("")
        if (!process.emit("SIGINT", "SIGINT")) process.kill(process.pid, "SIGINT")
        return true
      }
    })
  )

const approverOf = ({ approve, input, screen, view }: AtTerminal): Approver =>
  approve === "ask" ? askWith(input.ask, { screen, caughtUp: view.caughtUp }) : approverFor(approve, undefined)

/** One message to its end; true if the program is to stop as well. */
const said = Effect.fnUntraced(function* ({ chat, options, screen, view }: AtTerminal, message: string) {
  const { leave, outcome } = yield* chat.say(message, options, view.event, view.stopping)
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
  const { input, screen } = at
  const withApprover = Effect.provideService(Approval, approverOf(at))
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
