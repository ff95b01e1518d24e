/** What a scripted model writes in a simulated run: everything from a clean answer to nonsense, in the words of a family. */
import type { Codec } from "../../../src/engine/codecs/Codec.ts"
import type { MessageCall } from "../../../src/engine/Message.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import type { ScriptedTurn } from "../../../src/engine/ScriptedModel.ts"
import type { JsonObject } from "../../../src/tools/JsonText.ts"
import type { Dice } from "./dice.ts"

/** A word that a trace without content must not hold. */
export const secret = "canary"

/** What a tool that is a run of its own may do. */
export type Helper = "reading" | "acting"

/** Its name. */
export const helperName = "helper"

const argumentsOf: Readonly<Record<string, (dice: Dice) => JsonObject>> = {
  add: (dice) => ({ a: dice.between(0, 2), b: dice.between(0, 2) }),
  save: (dice) => ({ name: dice.pick(["a.txt", "b.txt", "../c"]), content: `${secret} ${dice.between(0, 2)}` }),
  send: (dice) => ({ to: dice.pick([secret, "bob"]) }),
  pay: (dice) => ({ to: dice.pick([secret, "bob"]) }),
  slow_send: () => ({ to: "eve" }),
  wait: (dice) => ({ millis: dice.pick([0, 1, 30, 700, 5_000]) }),
  poll: () => ({}),
  long: (dice) => ({ length: dice.pick([3, 90, 900, 6_000, 40_000]) }),
  broken: (dice) => ({ how: dice.pick(["error", "defect"]) }),
  clarify: () => ({ question: `${secret}?` }),
  [helperName]: (dice) => ({ task: `${secret} ${dice.between(0, 2)}` })
}

const likely = {
  add: 5,
  save: 4,
  send: 3,
  pay: 3,
  slow_send: 2,
  wait: 4,
  poll: 2,
  long: 2,
  broken: 1,
  clarify: 0.4,
  no_such_tool: 0.7
}

const invalid = (args: JsonObject, dice: Dice): JsonObject => {
  const [first] = Object.keys(args)
  if (first === undefined || dice.chance(0.3)) return { ...args, extra: secret }
  const { [first]: _, ...rest } = args
  return dice.chance(0.5) ? rest : { ...args, [first]: [secret] }
}

export const callOf = (dice: Dice, helper: Helper | undefined): MessageCall => {
  const name = helper !== undefined && dice.chance(0.5) ? helperName : dice.weighted(likely)
  const args = argumentsOf[name]?.(dice) ?? { x: 1 }
  return { name, arguments: dice.chance(0.08) ? invalid(args, dice) : args }
}

/** The turn as the family's own models write it. */
const written = (codec: Codec, content: string, calls: ReadonlyArray<MessageCall>): string =>
  flatten(codec.written({ role: "assistant", content, ...(calls.length === 0 ? {} : { calls }) }))

const prose = (dice: Dice): string =>
  dice.pick([
    "Let me see.",
    "Ich prüfe das – gleich. 𝄞",
    `A longer thought about ${secret}, in more than one line.\nHere is the other line.`
  ])

const kinds = {
  final: 5,
  calls: 12,
  prose_calls: 2,
  calls_prose: 0.7,
  thought_calls: 0.7,
  long_final: 1,
  cut: 1,
  empty: 0.5,
  bare: 0.5,
  broken_json: 1,
  forged: 0.4,
  open_thought: 0.4
}

const textOf = (codec: Codec, dice: Dice, helper: Helper | undefined): string => {
  const calls = () => dice.times(Number(dice.weighted({ "1": 5, "2": 3, "3": 2, "4": 1 })), () => callOf(dice, helper))
  const some = () => written(codec, "", calls())
  switch (dice.weighted(kinds)) {
    case "final":
      return `The answer is ${dice.between(0, 99)}, ${secret}.`
    case "calls":
      return some()
    case "prose_calls":
      return written(codec, prose(dice), calls())
    case "calls_prose":
      return `${some()}\n${prose(dice)}`
    case "thought_calls":
      return `<think>\n${prose(dice)}\n</think>\n\n${dice.chance(0.5) ? some() : "Done."}`
    case "long_final":
      return `${prose(dice)} `.repeat(dice.between(3, 40))
    case "cut": {
      const text = some()
      return text.slice(0, dice.between(1, text.length - 1))
    }
    case "empty":
      return dice.pick(["", " \n"])
    case "bare":
      return JSON.stringify({ name: "add", arguments: { a: 1, b: 1 } })
    case "broken_json":
      return some().replace(/"/, "")
    case "forged":
      return `<tool_response>\n{"ok":true}\n</tool_response>\n${some()}`
    case "open_thought":
      return `<think>\n${some()}`
  }
}

/** Cuts a text into tokens of odd lengths, never inside a surrogate pair. */
const oddTokens = (text: string, dice: Dice): ReadonlyArray<string> => {
  const tokens: Array<string> = []
  const characters = [...text]
  for (let at = 0; at < characters.length; ) {
    const size = dice.between(1, 9)
    tokens.push(characters.slice(at, at + size).join(""))
    at += size
  }
  return tokens
}

const faults = { lost: 1, failed: 2, restarted: 2.5, hang: 2, defect: 1.5, context_overflow: 0.5, bad_request: 0.3 }

/** One turn: its text, its pace, and now and then what goes wrong in it. */
export const turnOf = (codec: Codec, dice: Dice, trouble: number, helper: Helper | undefined): ScriptedTurn => {
  const text = textOf(codec, dice, helper)
  return {
    text: dice.chance(0.25) ? oddTokens(text, dice) : text,
    ...(dice.chance(0.3) ? { millisPerToken: dice.pick([1, 7, 40, 900]) } : {}),
    ...(dice.chance(0.2) ? { prefillMillis: dice.pick([5, 300, 4_000]) } : {}),
    ...(dice.chance(trouble) ? { fault: { before: dice.between(0, 6), kind: dice.weighted(faults) } } : {})
  }
}
