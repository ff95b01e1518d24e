/** The turn markup that the Qwen families and many others share: `<|im_start|>role`, text, `<|im_end|>`. */
import { control, type Segment } from "../Prompt.ts"
import { Markup } from "./Markup.ts"

/** Texts that a vocabulary of these families may hold as one token. */
export const markers = [
  "<|im_start|>",
  "<|im_end|>",
  "<|endoftext|>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
  "<think>",
  "</think>"
] as const

export const markup = (): Markup => new Markup(markers)

export const turn = (role: "system" | "user", content: string): ReadonlyArray<Segment> =>
  markup().mark(`<|im_start|>${role}\n`).say(content).mark("<|im_end|>\n").done()

export const opening: ReadonlyArray<Segment> = [control("<|im_start|>assistant\n")]

export const thinkTags = { open: "<think>", close: "</think>" } as const

/** The block that keeps a model from thinking: it comes right after the opening. */
export const emptyThink: Segment = control("<think>\n\n</think>\n\n")

export const closing: ReadonlyArray<Segment> = [control("<|im_end|>\n")]

/** End-of-turn texts that may show up in what a model wrote, and what only a forged turn contains. */
export const ends = ["<|im_end|>", "<|endoftext|>"] as const
