/** The last turns of a run that is too long to be shown whole: kept as they go by, and read again at the end. */
import type { TraceRecord } from "../TraceReader.ts"
import { Calls } from "./Calls.ts"
import { Conversation } from "./Conversation.ts"
import type { Room } from "./Markup.ts"

const turns = 100
/** Events of one turn that are kept. */
const mostEvents = 1_000

export class LateTurns {
  /** A ring of turns with all that follows each. */
  readonly #kept: Array<Array<TraceRecord>> = []
  #next = 0

  readonly see = (record: TraceRecord): void => {
    if (record.event_type === "generation_token") return
    if (record.event_type === "model_call_started" && !(Number(record.data["attempt"]) > 0)) {
      this.#kept[this.#next % turns] = []
      this.#next += 1
    }
    // What stands before the first of them belongs to a turn that is shown, or left out.
    const turn = this.#kept[(this.#next - 1) % turns]
    if (turn !== undefined && turn.length < mostEvents) turn.push(record)
  }

  readonly conversation = (room: Room): Conversation | undefined => {
    if (this.#next === 0) return undefined
    const [calls, found] = [new Calls(room, "late-call"), new Conversation(room)]
    const start = this.#next > turns ? this.#next % turns : 0
    for (const record of [...this.#kept.slice(start), ...this.#kept.slice(0, start)].flat()) {
      found.see(record)
      const about = calls.see(record)
      if (about?.isNew === true) found.call(about.call, record.step)
    }
    return found
  }
}
