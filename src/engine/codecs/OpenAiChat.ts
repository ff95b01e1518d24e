/**
 * The language of servers that are told messages and tools as data (`/v1/chat/completions`). No model writes it: the engine
 * (`OpenAiModel`) reads a prompt of it as messages and writes what the server answers in it. A frame is begun by U+001E,
 * which no JSON text and no content here can hold, so nothing said can begin one.
 *
 * ```text
 *   ␞system {"tools":[…]}⏎ text   ␞user⏎ text   ␞assistant {"thinking":true}⏎   ␞tool {"id":"c1","name":"read"}⏎ text
 *   a turn:  text   ␞reasoning⏎ text   ␞text⏎ text   ␞call {"id":"c1","name":"read"}⏎ arguments, as the server gave them
 * ```
 */
import * as Result from "effect/Result"
import { isObject, type JsonObject, parse } from "../../tools/JsonText.ts"
import type { ProposedCall } from "../../tools/ToolCall.ts"
import type { EndReason } from "../Generation.ts"
import type { ModelIdentity } from "../Model.ts"
import { control, type Segment, text } from "../Prompt.ts"
import type { Action, AssistantTurn, Codec, ParserOptions, RenderOptions, TurnParser, Visible } from "./Codec.ts"
import { renderAppended, type Turns } from "./Conversation.ts"
import { argumentsDepth, checkName, describeJsonFault, type EnvelopeFault } from "./Envelope.ts"
import { type Fault, malformed } from "./Fault.ts"

/** Begins a frame. */
export const mark = "\u001e"

const form = "call tools the way they were told to you, with the arguments as one JSON object"

/** A frame's first line. */
export const frame = (kind: string, about?: JsonObject): string =>
  `${mark}${kind}${about === undefined ? "" : ` ${JSON.stringify(about)}`}\n`

export interface Frame {
  /** `""`: what stands before the first frame. */
  readonly kind: string
  readonly about: JsonObject
  readonly body: string
  /** UTF-16 offset of the body. */
  readonly at: number
}

/** The frames of a text of ours or of a turn. */
export const frames = (whole: string): ReadonlyArray<Frame> => {
  const out: Array<Frame> = []
  let at = 0
  for (const [index, part] of whole.split(mark).entries()) {
    const line = index === 0 ? "" : part.split("\n", 1)[0]!
    const [, kind = "", about = "{}"] = /^([a-z]*)(?: (.*))?$/s.exec(line) ?? []
    const head = index === 0 ? 0 : line.length + 1
    const read = parse(about)
    out.push({
      kind,
      about: Result.isSuccess(read) && isObject(read.success) ? read.success : {},
      body: part.slice(head),
      at: at + head
    })
    at += part.length + 1
  }
  return out.filter(({ body, kind }) => kind !== "" || body !== "")
}

/** Content as it stands in a turn: nothing in it begins a frame. */
export const plain = (content: string): string => content.replaceAll(mark, "\ufffd")

const shownAs: Readonly<Record<string, Visible["_tag"]>> = { "": "Text", text: "Text", reasoning: "Reasoning" }

const argumentsOf = (body: string): Result.Result<JsonObject, EnvelopeFault> => {
  const read = parse(body, { maxDepth: argumentsDepth })
  if (Result.isFailure(read)) return Result.fail(describeJsonFault(read.failure))
  return isObject(read.success)
    ? Result.succeed(read.success)
    : Result.fail({ code: "arguments_not_object", what: '"arguments" must be a JSON object' })
}

/** A call as a server gave it, or what is wrong with it. */
export const readCall = ({ about, body }: Frame): Result.Result<Omit<ProposedCall, "ordinal">, EnvelopeFault> => {
  const { id, name } = about
  const wrong = checkName(name)
  if (wrong !== undefined) return Result.fail(wrong)
  return Result.map(argumentsOf(body), (args) => ({
    name: name as string,
    arguments: args,
    ...(typeof id === "string" && id !== "" ? { id } : {})
  }))
}

class Parser implements TurnParser {
  #whole = ""
  /** How far what may be shown was shown, and in which kind of frame that is. */
  #seen = 0
  #kind: string | undefined = ""

  readonly push = (piece: string): ReadonlyArray<Visible> => {
    this.#whole += piece
    return this.#show()
  }

  readonly end = (reason: EndReason): { readonly visible: ReadonlyArray<Visible>; readonly action: Action } => ({
    visible: this.#show(),
    action: this.#action(reason)
  })

  #show(): ReadonlyArray<Visible> {
    const out: Array<Visible> = []
    for (;;) {
      if (this.#kind === undefined) {
        const line = this.#whole.indexOf("\n", this.#seen)
        if (line < 0) return out
        this.#kind = /^[a-z]*/.exec(this.#whole.slice(this.#seen, line))![0]
        this.#seen = line + 1
      }
      const next = this.#whole.indexOf(mark, this.#seen)
      const body = this.#whole.slice(this.#seen, next < 0 ? undefined : next)
      const tag = shownAs[this.#kind]
      if (tag !== undefined && body !== "") out.push({ _tag: tag, text: body })
      this.#seen += body.length
      if (next < 0) return out
      this.#seen = next + 1
      this.#kind = undefined
    }
  }

  #action(reason: EndReason): Action {
    const all = frames(this.#whole)
    const joined = (which: (frame: Frame, at: number) => boolean) =>
      all
        .filter(which)
        .map(({ body }) => body)
        .join("")
    const reasoning = joined(({ kind }) => kind === "reasoning").trim()
    const isText = ({ kind }: Frame) => shownAs[kind] === "Text"
    const firstCall = all.findIndex(({ kind }) => kind === "call")
    const calls: Array<ProposedCall> = []
    const broken = (fault: Fault) => malformed(fault, form, this.#whole, calls, reasoning)
    for (const one of all) {
      if (one.kind !== "call") continue
      const read = readCall(one)
      if (Result.isSuccess(read)) {
        calls.push({ ordinal: calls.length, ...read.success })
        continue
      }
      // What the limit cut is no mistake of syntax.
      const cut = reason === "length" && one === all[all.length - 1]
      const what = cut ? { code: "truncated" as const, what: "the output limit cut the call" } : read.failure
      return broken({ ...what, at: one.at, ordinal: calls.length })
    }
    const before = joined((one, at) => isText(one) && (firstCall < 0 || at < firstCall))
    const reasoned = reasoning === "" ? {} : { reasoning }
    if (calls.length > 0) {
      const textAfter = joined((one, at) => isText(one) && at > firstCall)
      return { _tag: "ToolCalls", calls, textBefore: before, textAfter, ...reasoned }
    }
    if (before.trim() !== "") return { _tag: "FinalText", text: before, ...reasoned }
    return broken(
      reason === "length" && reasoning !== ""
        ? {
            code: "truncated",
            what: "the output limit cut the turn inside the reasoning, so think less before you act",
            at: 0
          }
        : { code: "empty_turn", what: "the turn has neither an answer nor a call", at: 0 }
    )
  }
}

const system = (said: string | undefined, { tools }: RenderOptions): ReadonlyArray<Segment> => {
  const told = tools.map(({ description, name, parameters }) => ({ name, description, parameters }))
  const about = { ...(told.length === 0 ? {} : { tools: told }), ...(said === undefined ? { silent: true } : {}) }
  const head = control(frame("system", Object.keys(about).length === 0 ? undefined : about))
  return said === undefined ? [head] : [head, text(said)]
}

const written = ({ calls = [], content, reasoning }: AssistantTurn): ReadonlyArray<Segment> => [
  ...(reasoning === undefined ? [] : [control(frame("reasoning")), text(reasoning), control(frame("text"))]),
  ...(content === "" ? [] : [text(content)]),
  ...calls.map(({ arguments: args, id, name }) =>
    control(`${frame("call", { ...(id === undefined ? {} : { id }), name })}${JSON.stringify(args)}`)
  )
]

const turns: Turns = {
  system,
  laterSystem: (content) => [control(frame("system")), text(content)],
  user: (content) => [control(frame("user")), text(content)],
  answers: (list) =>
    list.flatMap(({ id, name, text: content }) => [
      control(frame("tool", { ...(id === undefined ? {} : { id }), name })),
      text(content)
    ]),
  opening: ({ thinking }) => [control(frame("assistant", thinking === undefined ? undefined : { thinking }))],
  closing: [],
  written
}

export const openAiChat: Codec = {
  id: "openai-chat",
  stops: [],
  ends: [],
  system,
  user: turns.user,
  answers: turns.answers,
  opening: turns.opening,
  closing: turns.closing,
  written,
  render: (messages, options) => renderAppended(turns, messages, options),
  parser: (_options: ParserOptions) => new Parser()
}

/** Is this a server that is told messages? Then this codec fits, and no other. */
export const speaksChat = ({ build, engine }: ModelIdentity): boolean =>
  engine === "openai" && build?.["api"] === "chat"
