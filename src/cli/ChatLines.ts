/**
 * A chat without a terminal: each line of standard input is a message, each answer goes to standard output, everything else
 * to standard error. Nobody can be asked, so calls that need an approval are refused unless it was said otherwise.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { exitCode, type Outcome } from "../effects/Outcome.ts"
import { Approval } from "../effects/Policy.ts"
import type { RunOptions } from "../effects/Run.ts"
import type { ApproveMode } from "../effects/SettingFields.ts"
import { approverFor } from "./Approvers.ts"
import { type Conversation, linesFor, unknownLines } from "./ChatAnswers.ts"
import { goesOn, read } from "./ChatWords.ts"
import { endWith, usage } from "./Ending.ts"
import { block, jsonText } from "./Printable.ts"
import * as Report from "./Report.ts"
import { stopText } from "./RunWords.ts"
import type { Screen } from "./Screen.ts"

export interface FromLines extends Conversation {
  readonly screen: Pick<Screen, "columns" | "paint">
  readonly options: RunOptions
  readonly approve: ApproveMode
  readonly json: boolean
  readonly about: Pick<Report.RunAbout, "model" | "codec" | "tools">
}

/** The answer as it is, unless a person would see it. */
const answer = (text: string): Effect.Effect<void> => Console.log(process.stdout.isTTY ? block(text) : text)

const answered = (outcome: Outcome, { about, json }: FromLines): Effect.Effect<void> => {
  if (json) return Console.log(jsonText(Report.document(outcome, { ...about, transcriptPath: undefined }), 0))
  const { stop } = outcome
  if (stop._tag === "NeedsInput") return answer(stop.question)
  return stop._tag === "Completed" ? answer(stop.text) : Console.error(`writ: ${block(stopText(stop))}`)
}

/** What a chat ends with: the code of the first message that came to no answer. A question counts if no line followed it. */
class Codes {
  #first = 0
  #asked = 0

  readonly add = ({ stop }: Outcome): void => {
    const code = exitCode(stop)
    this.#asked = stop._tag === "NeedsInput" ? code : 0
    if (this.#first === 0 && stop._tag !== "NeedsInput") this.#first = code
  }

  get code(): number {
    return this.#first === 0 ? this.#asked : this.#first
  }
}

/** One whole message, or a word; false if nothing comes after it. */
const taken = Effect.fnUntraced(function* (from: FromLines, codes: Codes, text: string) {
  const asked = read(text)
  if (asked._tag === "Message") {
    if (asked.text.trim() === "") return true
    const { leave, outcome } = yield* from.chat.say(asked.text, from.options, () => {})
    codes.add(outcome)
    yield* answered(outcome, from)
    return !leave && outcome.stop._tag !== "Cancelled"
  }
  if (asked._tag === "Exit") return false
  const lines =
    asked._tag === "Word" ? yield* linesFor(asked.word, from, from.screen) : unknownLines(asked.word, from.screen)
  yield* Console.error(lines.join("\n"))
  return true
})

export const answerLines = Effect.fnUntraced(function* (from: FromLines) {
  const { stdin } = yield* Stdio.Stdio
  const codes = new Codes()
  const begun: Array<string> = []
  let more = true
  const whole = (text: string) => Effect.tap(taken(from, codes, text), (on) => Effect.sync(() => (more = on)))
  const onLine = (line: string) =>
    Effect.suspend(() => {
      const further = goesOn(line)
      begun.push(further ? line.slice(0, -1) : line)
      return further ? Effect.succeed(true) : whole(begun.splice(0).join("\n"))
    })
  const all = Stream.runForEachWhile(Stream.splitLines(Stream.decodeText(stdin)), onLine)
  yield* Effect.gen(function* () {
    yield* Effect.catchTag(all, "PlatformError", (error) => usage(`standard input: ${error.message}`))
    if (more && begun.length > 0) yield* whole(begun.join("\n"))
  }).pipe(Effect.provideService(Approval, approverFor(from.approve, undefined)))
  yield* endWith(codes.code)
})
