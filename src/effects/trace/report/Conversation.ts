/** The run as a conversation: messages, turns with their reasoning folded, calls inside their turn, and how it ended. */
import type { TraceRecord } from "../TraceReader.ts"
import type { Call } from "./Calls.ts"
import { badge, callCard } from "./CallView.ts"
import { amount, content, count, type Data, duration, turnOf, word } from "./Fields.ts"
import { html, Markup, number, type Part, type Room } from "./Markup.ts"

/** Messages and turns that are shown from the beginning. */
const most = 400
const shownText = 20_000
const longFrom = 100

interface Message {
  readonly kind: "message"
  readonly role: string
  readonly title: string
  readonly seconds: number
  readonly body: Markup
}

interface Turn {
  readonly kind: "turn"
  readonly turn: number
  readonly seconds: number
  readonly raw: Array<Markup>
  readonly calls: Array<Call>
  tokens: number
  millis: number
  action: string
  text?: Markup
  reasoning?: Markup
  mistake?: Markup
  rolledBack?: string
  finished: boolean
}

const titles: Readonly<Record<string, string>> = {
  system: "System",
  user: "User",
  tool_result: "Answer to an earlier call",
  history: "History"
}

const turnState = (turn: Turn): Markup => {
  if (turn.rolledBack !== undefined) return badge("bad", `rolled back: ${turn.rolledBack}`)
  if (!turn.finished) return badge("warn", "no end in the record")
  if (turn.action === "malformed" || turn.action === "malformed_tool_call") return badge("bad", "malformed")
  if (turn.action === "final_text") return badge("good", "answer")
  return badge("quiet", count(turn.calls.length, "call"))
}

/** Nobody knows what a turn took that never finished. */
const spent = ({ finished, millis, tokens }: Turn): Part =>
  finished || tokens > 0
    ? html`${badge("quiet", count(tokens, "token"))} ${badge("quiet", duration(millis))}`
    : undefined

const folded = (title: string, body: Part, open = false): Markup =>
  html`<details${new Markup(open ? " open" : "")}><summary>${title}</summary>${body}</details>`

const turnView = (turn: Turn): Markup => {
  const answered = turn.action === "final_text" && turn.text !== undefined
  const only = turn.text === undefined && turn.calls.length === 0
  return html`<article class="turn${turn.rolledBack === undefined ? "" : " rolled"}" id="turn-${turn.turn}" tabindex="-1">
<h3>Model, turn ${turn.turn + 1} <span class="at">${turn.seconds.toFixed(3)} s</span></h3>
<p class="badges">${turnState(turn)} ${spent(turn)}</p>
${turn.reasoning === undefined ? undefined : folded("Reasoning", turn.reasoning)}${
  turn.text === undefined ? undefined : html`<div class="${answered ? "said answer" : "said"}">${turn.text}</div>`
}${turn.mistake}${turn.calls.map(callCard)}${turn.raw.length === 0 ? undefined : folded("As the model wrote it", turn.raw, only)}
</article>
`
}

const messageView = ({ body, role, seconds, title }: Message): Markup =>
  html`<article class="${role}">
<h3>${title} <span class="at">${seconds.toFixed(3)} s</span></h3>
${body}
</article>
`

export class Conversation {
  readonly #room: Room
  readonly #entries: Array<Message | Turn> = []
  readonly #turns = new Map<number, Turn>()
  #more = 0
  #last: Turn | undefined

  constructor(room: Room) {
    this.#room = room
  }

  /** There is no room for another message or turn. */
  get full(): boolean {
    return this.#entries.length >= most
  }

  /** Messages and turns that found no room. */
  get more(): number {
    return this.#more
  }

  get count(): number {
    return this.#entries.length
  }

  readonly see = (record: TraceRecord) => {
    const { data, event_type: type, t_ms } = record
    const seconds = t_ms / 1000
    switch (type) {
      case "message_committed":
        return this.#message(data, seconds)
      case "model_call_started":
        return this.#started(turnOf(data, record.step), seconds)
      case "model_call_finished":
        return this.#finished(this.#turns.get(turnOf(data, record.step)), data)
      case "turn_rolled_back": {
        const turn = this.#turns.get(turnOf(data, record.step))
        if (turn !== undefined) turn.rolledBack = word(data["reason"])
        return
      }
      case "assistant_action_parsed":
        return this.#parsed(this.#turns.get(turnOf(data, record.step)), data)
      case "feedback_committed":
        return this.#add({ role: "feedback", title: `Feedback: ${word(data["code"])}`, seconds }, data["content"])
      case "feedback_uncommitted":
        return this.#add({ role: "feedback", title: "Feedback that was not given", seconds }, data["code"])
      case "run_resumed":
        return this.#add({ role: "note", title: "Goes on where another run stopped", seconds }, data["from_run"])
      case "run_completed":
        if (this.#last !== undefined) this.#last.text = this.#box(data["final_text"] ?? data["final_text_sha256"])
    }
  }

  /** Puts a call under the turn that wrote it. */
  readonly call = (call: Call, step: string): void => {
    const turn = /^model-/.test(step) ? this.#turns.get(turnOf({}, step)) : this.#last
    ;(turn ?? this.#last)?.calls.push(call)
  }

  #box(value: unknown): Markup {
    return this.#room.box(content(value, 2), shownText)
  }

  #push(entry: Message | Turn): void {
    if (this.full) this.#more += 1
    else this.#entries.push(entry)
  }

  #add(about: Pick<Message, "role" | "title" | "seconds">, body: unknown): void {
    if (this.full) this.#more += 1
    else this.#push({ kind: "message", ...about, body: this.#box(body) })
  }

  #message(data: Data, seconds: number): void {
    const role = word(data["role"])
    const body = data["content"]
    // A system text that nobody wrote is not a message.
    if (body === "" && role === "system") return
    const known = Object.hasOwn(titles, role) ? titles[role]! : role
    const text = body ?? (data["content_omitted"] === true ? `(${amount(data["bytes"])} bytes, not recorded)` : "")
    this.#add({ role: Object.hasOwn(titles, role) ? role : "note", title: known, seconds }, text)
  }

  #started(turn: number, seconds: number): void {
    const known = this.#turns.get(turn)
    if (known !== undefined) {
      known.finished = false
      return
    }
    const made: Turn = {
      kind: "turn",
      turn,
      seconds,
      raw: [],
      calls: [],
      tokens: 0,
      millis: 0,
      action: "",
      finished: false
    }
    this.#last = made
    this.#push(made)
    // What is not shown need not be found again.
    if (this.#more === 0) this.#turns.set(turn, made)
  }

  #finished(turn: Turn | undefined, data: Data): void {
    if (turn === undefined) return
    turn.finished = true
    turn.tokens += amount(data["output_tokens"] ?? data["output_tokens_committed"])
    turn.millis += amount(data["prefill_ms"]) + amount(data["decode_ms"])
    const text = data["text"] ?? data["text_sha256"]
    // A later attempt holds the earlier ones' text.
    if (text !== undefined) turn.raw.splice(0, 1, this.#box(text))
  }

  #parsed(turn: Turn | undefined, data: Data): void {
    if (turn === undefined) return
    turn.action = word(data["action"])
    if (data["reasoning"] !== undefined) turn.reasoning = this.#box(data["reasoning"])
    if (data["text"] !== undefined) turn.text = this.#box(data["text"])
    if (!turn.action.startsWith("malformed")) return
    const excerpt = data["excerpt"] === undefined ? undefined : this.#box(data["excerpt"])
    turn.mistake = html`<p class="why"><strong>${word(data["code"])}</strong> ${this.#room.line(content(data["reason"]), 2_000)}</p>${excerpt}`
  }

  /** Where links to turns and calls can lead. */
  readonly anchors = (): ReadonlySet<string> => {
    const turns = this.#entries.filter((entry) => entry.kind === "turn")
    return new Set(turns.flatMap(({ calls, turn }) => [`turn-${turn}`, ...calls.map(({ anchor }) => anchor)]))
  }

  readonly parts = (): ReadonlyArray<Markup> =>
    this.#entries.map((entry) => (entry.kind === "turn" ? turnView(entry) : messageView(entry)))
}

/** `late`: the end of a long conversation, whose beginning `early` is. `moreCalls`: calls of shown turns that are not shown. */
export const conversation = (early: Conversation, late: Conversation | undefined, moreCalls: number): Markup => {
  const [first, last] = [early.parts(), late?.parts() ?? []]
  const left = early.more - last.length
  const gap =
    left > 0
      ? html`<p class="cut">${number(left)} messages and turns, with their calls, are not shown here; the trace has them.</p>
`
      : undefined
  const calls =
    moreCalls > 0 && gap === undefined
      ? html`<p class="cut">${number(moreCalls)} more calls are not shown here; the trace has them.</p>`
      : undefined
  // What is off the screen of a long one need not be laid out.
  const size = first.length > longFrom ? "long" : "short"
  return html`<div class="${size}">${first.length === 0 ? html`<p class="quiet">Nothing was said.</p>` : first}${gap}${last}</div>${calls}`
}
