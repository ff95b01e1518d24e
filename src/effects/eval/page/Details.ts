/** One conversation in full: what was asserted and what came of it, what was said, and what each turn took and did. */
import { type Block, blocksOf, type Message, type TurnTrace } from "../../conversation/Conversation.ts"
import { html, json, type Markup, type Part, type Room } from "../../trace/report/Markup.ts"
import { outcomes } from "../Verdict.ts"
import { countOf, type DecidedIn, type Row } from "./Rows.ts"

const shownText = 20_000
const shownReason = 2_000
const mostMessages = 200
const mostEvents = 50

const tone = { pass: "good", fail: "bad", errored: "bad", malformed: "warn", deferred: "warn" } as const

const badges = (decided: ReadonlyArray<DecidedIn>): Markup =>
  html`<p class="badges">${outcomes.flatMap((outcome) => {
    const n = countOf(decided, outcome)
    return n === 0 ? [] : [html`<span class="badge ${tone[outcome]}">${n} ${outcome}</span>`]
  })}</p>`

const fieldsOf = ({ assertion }: DecidedIn): string => {
  if (assertion === undefined) return ""
  const { type: _, ...fields } = assertion
  return Object.keys(fields).length === 0 ? "" : json(fields)
}

const assertionRow = (one: DecidedIn, room: Room): Markup => {
  const { outcome, reason } = one.verdict
  return html`<tr><td class="name">${one.case} #${one.ordinal}</td><td class="name">${one.class}</td><td>${room.line(fieldsOf(one), 300)}</td><td class="name"><span class="${outcome}">${outcome}</span></td><td class="reason">${reason === undefined ? undefined : room.line(reason, shownReason)}</td></tr>\n`
}

const blockView = (block: Block, room: Room): Markup => {
  switch (block.type) {
    case "text":
      return room.box(block.text, shownText)
    case "thinking":
      return html`<details><summary>reasoning</summary>${room.box(block.thinking, shownText)}</details>`
    case "tool_use":
      return html`<p class="kind">calls <strong>${block.name}</strong> <code>${block.id}</code></p>${room.box(json(block.input, 2), shownText)}`
    case "tool_result":
      return html`<p class="kind">${block.is_error === true ? html`<span class="fail">error</span>, answers ` : "answers "}<code>${block.tool_use_id}</code></p>${room.box(block.content, shownText)}`
    case "image":
      return html`<p class="quiet">an image</p>`
  }
}

const traceView = (trace: TurnTrace, room: Room): Markup => {
  const { events, latency_ms, model, span_id, tokens } = trace
  const cache = tokens.cache_hit === undefined ? "" : `, ${tokens.cache_hit} from the cache`
  const rows = events
    .slice(0, mostEvents)
    .map(
      (event) => html`<tr><td class="name">${event.name}</td><td>${room.line(json(event.attributes), 600)}</td></tr>\n`
    )
  const more = events.length - rows.length
  return html`<details><summary>trace: ${tokens.input} tokens in, ${tokens.output} out${cache}, ${latency_ms} ms, ${events.length} events</summary>
<p class="quiet">${model} · <code>${span_id}</code></p>
${rows.length === 0 ? undefined : html`<div class="scroll"><table class="wide"><tbody>${rows}</tbody></table></div>`}${more > 0 ? html`<p class="cut">${more} more events are in the file.</p>` : undefined}</details>`
}

const messageView = (message: Message, index: number, room: Room): Markup => {
  const blocks = blocksOf(message)
  const body: ReadonlyArray<Part> =
    message.content === undefined
      ? [html`<p class="cut">a blank slot: no run has filled it</p>`]
      : blocks.map((block) => blockView(block, room))
  return html`<li class="${message.role}"><p class="kind">${index} · ${message.role}</p>${body}${
    message.trace === undefined ? undefined : traceView(message.trace, room)
  }</li>
`
}

/** Red: something is not as it should be; open: something is not decided; green: all passed. */
export const stateOf = (decided: ReadonlyArray<DecidedIn>): "red" | "open" | "green" => {
  const [passed, deferred] = [countOf(decided, "pass"), countOf(decided, "deferred")]
  if (passed + deferred < decided.length) return "red"
  return deferred > 0 ? "open" : "green"
}

export const details = (row: Row, room: Room): Markup => {
  const { conversation, decided, id, name } = row
  const binding = Object.entries(conversation?.meta.binding ?? {}).map(([axis, value]) => `${axis}: ${value}`)
  const session = conversation?.session ?? []
  const left = session.length - mostMessages
  return html`<article class="${stateOf(decided)}" id="${id}" tabindex="-1">
<h3>${name}</h3>
<p class="quiet">${conversation === undefined ? "there is no such file" : [conversation.meta.model, ...binding].join(" · ")}</p>
${badges(decided)}
<div class="scroll"><table class="wide"><thead><tr><th>case</th><th>assertion</th><th>fields</th><th>outcome</th><th>reason</th></tr></thead><tbody>
${decided.map((one) => assertionRow(one, room))}</tbody></table></div>
${
  session.length === 0
    ? undefined
    : html`<details><summary>conversation: ${session.length} messages</summary><ol class="turnlist">
${session.slice(0, mostMessages).map((message, index) => messageView(message, index, room))}</ol>${left > 0 ? html`<p class="cut">${left} more messages are in the file.</p>` : undefined}</details>`
}
</article>
`
}
