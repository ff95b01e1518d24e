/**
 * Grammar of gpt-oss calls. A call is a message to a function; it begins where a header names a recipient, and everything
 * up to the mark that ends the message is held. The reader takes the marks of messages for marks inside strings too, so
 * strings do not hold them as they are.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { argumentsOf, type CompiledGrammar } from "../Grammar.ts"
import { literal } from "../grammar/Gbnf.ts"
import { jsonWithout } from "../grammar/Spelling.ts"

/** What ends the body of a message, rightly or not. */
const bodyEnds = ["<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>", "<|message|>"]

const spelling = jsonWithout(bodyEnds)

const marks = { channel: "<|channel|>", constrain: "<|constrain|>", message: "<|message|>", closer: "<|call|>" }

/** A recipient stands behind the channel, or behind the role and before the channel. */
export const grammar = (tools: ReadonlyArray<ToolSpec>): CompiledGrammar | undefined => {
  const { notCarried, rules, tools: callable } = argumentsOf(tools, spelling)
  if (callable.length === 0) return undefined
  const json = rules.add(`(" " (constrain)? "json")? message`)
  const calls = (header: string): string =>
    rules.add(
      callable.map(({ body, name }) => `${literal(`functions.${name}`)} ${header} ${json} ${body} closer`).join(" | ")
    )
  const behindRole = calls('channel "commentary"')
  const behindChannel = calls("")
  return {
    notCarried,
    grammar: {
      openers: [
        { text: "<|channel|>commentary to=", root: behindChannel },
        { text: "<|channel|>analysis to=", root: behindChannel },
        { text: "<|start|>assistant to=", root: behindRole },
        { text: "to=", root: behindRole, atStart: true }
      ],
      rules: rules.text,
      marks,
      closer: marks.closer,
      bracket: "{"
    }
  }
}
