/**
 * What cells came to, on disk: `<folder>/<key>/` with the conversation, `cell.json` once it is complete and one
 * `verdicts-<suite>.json` per suite that was asked. A file that is broken, or of a conversation that was changed since, counts as absent.
 */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Conversation } from "../../conversation/Conversation.ts"
import type { ConversationError } from "../../conversation/ConversationError.ts"
import * as ConversationFile from "../../conversation/ConversationFile.ts"
import * as ConversationText from "../../conversation/ConversationText.ts"
import { type KeptError, makeKept } from "../Kept.ts"
import { AssertionReport } from "../Report.ts"
import { type ReportError, writeIn } from "../ReportFiles.ts"
import { type Cell, sha256 } from "./Cell.ts"

const Ran = Schema.Struct({
  /** `completed`, `limit`, … */
  stop: Schema.String,
  /** For people. */
  message: Schema.String,
  turns: Schema.Natural,
  tool_calls: Schema.Natural,
  /** The conversation's text when the run was over. */
  conversation_sha256: Schema.String
})

export type Ran = typeof Ran.Type

const Verdicts = Schema.Struct({
  cases: Schema.Array(Schema.Struct({ index: Schema.Natural, assertions: Schema.Array(AssertionReport) }))
})

export type Verdicts = typeof Verdicts.Type

const decodeRan = Schema.decodeUnknownOption(Schema.fromJsonString(Ran))
const decodeVerdicts = Schema.decodeUnknownOption(Schema.fromJsonString(Verdicts))

const textAt = (path: string): string | undefined => (existsSync(path) ? readFileSync(path, "utf8") : undefined)

/** A cell that was run to its end. */
export interface Done {
  readonly ran: Ran
  readonly conversation: Conversation
}

export class CellStore {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  readonly directory = ({ key }: Cell): string => join(this.folder, key)

  /** The conversation of a cell, which a run fills. */
  readonly file = (cell: Cell): string => join(this.directory(cell), `${cell.prompt.name}.yaml`)

  /** What is there of the cell, if all of it is. */
  readonly find = (cell: Cell): Effect.Effect<Done | undefined> =>
    Effect.sync(() => {
      const ran = decodeRan(textAt(join(this.directory(cell), "cell.json")))
      const text = Option.isSome(ran) ? textAt(this.file(cell)) : undefined
      if (Option.isNone(ran) || text === undefined || sha256(text) !== ran.value.conversation_sha256) return undefined
      const read = ConversationText.parse(text)
      return Result.isSuccess(read) ? { ran: ran.value, conversation: read.success } : undefined
    })

  /** Puts the cell's conversation there, unless an earlier process has begun to fill it. */
  readonly begin = (cell: Cell): Effect.Effect<Conversation, KeptError | ConversationError> =>
    Effect.gen({ self: this }, function* () {
      const file = this.file(cell)
      yield* makeKept(this.directory(cell), this.folder)
      const begun = existsSync(file) && !existsSync(join(this.directory(cell), "cell.json"))
      const before = begun ? yield* Effect.result(ConversationFile.load(file)) : undefined
      if (before !== undefined && Result.isSuccess(before)) return before.success
      yield* this.forget(cell)
      yield* makeKept(this.directory(cell), this.folder)
      yield* ConversationFile.save(file, cell.prompt.conversation)
      return cell.prompt.conversation
    })

  /** The run is over: from now on the cell is there. */
  readonly complete = (
    cell: Cell,
    ran: Omit<Ran, "conversation_sha256">
  ): Effect.Effect<Done, ReportError | ConversationError> =>
    Effect.gen({ self: this }, function* () {
      const text = readFileSync(this.file(cell), "utf8")
      const whole = { ...ran, conversation_sha256: sha256(text) }
      const conversation = yield* ConversationFile.load(this.file(cell))
      yield* writeIn(this.directory(cell), "cell.json", [`${JSON.stringify(whole, undefined, 2)}\n`], this.folder)
      return { ran: whole, conversation }
    })

  readonly #verdicts = (suite: string): string => `verdicts-${suite.slice(0, 16)}.json`

  /** @param suite what names the suite and its judges */
  readonly verdicts = (cell: Cell, suite: string): Effect.Effect<Verdicts | undefined> =>
    Effect.sync(() => Option.getOrUndefined(decodeVerdicts(textAt(join(this.directory(cell), this.#verdicts(suite))))))

  readonly keep = (cell: Cell, suite: string, verdicts: Verdicts): Effect.Effect<unknown, ReportError> =>
    writeIn(this.directory(cell), this.#verdicts(suite), [`${JSON.stringify(verdicts, undefined, 2)}\n`], this.folder)

  readonly forget = (cell: Cell): Effect.Effect<void> =>
    Effect.sync(() => rmSync(this.directory(cell), { recursive: true, force: true }))
}
