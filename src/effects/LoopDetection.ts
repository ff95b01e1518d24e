/** Notices a model that goes round in circles: the same call with the same answer, or two calls taking turns. */
import { hash } from "node:crypto"
import { type Answer, answerText } from "../tools/ToolCall.ts"

/** Equal for equal tool, canonical arguments and answer. */
export const fingerprint = (tool: string, canonicalArguments: string, answer: Answer): string =>
  hash("sha256", `${tool}\n${canonicalArguments}\n${answerText(answer)}`)

/**
 * What the newest calls look like, oldest first.
 * @param threshold how many equal calls in a row, or how many rounds of A B, count; below 2 nothing does
 */
export const detect = (prints: ReadonlyArray<string>, threshold: number): "identical" | "ping_pong" | undefined => {
  if (threshold < 2 || prints.length < threshold) return undefined
  const last = prints.at(-1)!
  if (prints.slice(-threshold).every((print) => print === last)) return "identical"
  const rounds = prints.slice(-2 * threshold)
  const before = prints.at(-2)!
  const alternates = rounds.every((print, at) => print === ((rounds.length - at) % 2 === 1 ? last : before))
  return rounds.length === 2 * threshold && before !== last && alternates ? "ping_pong" : undefined
}
