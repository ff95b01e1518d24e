/**
 * Holds a turn to a grammar from where a call begins to where it ends. The library asks for the grammar's state before each
 * token; nothing in that answer can throw. One constraint serves one attempt at a turn.
 */
import type { LlamaGrammar, LlamaGrammarEvaluationState, LlamaModel, Token } from "node-llama-cpp"
import { EngineError } from "./EngineError.ts"
import type { CallGrammar, CallOpener } from "./Grammar.ts"
import { CallWatch } from "./grammar/CallWatch.ts"
import { literal } from "./grammar/Gbnf.ts"
import type { Library } from "./LlamaLibrary.ts"
import type { Detokenize } from "./LlamaText.ts"
import type { Tokenizer } from "./LlamaTokenizer.ts"

/** Grammars that are kept for later turns. */
const keptGrammars = 64

/** What an engine needs to make constraints. */
export interface ConstraintParts {
  readonly library: Library
  readonly model: LlamaModel
  readonly tokenizer: Tokenizer
  readonly detokenize: Detokenize
}

/** Makes the constraints of one model and remembers their grammars. */
export class Constraints {
  readonly parts: ConstraintParts
  readonly #grammars = new Map<string, Promise<LlamaGrammar>>()

  constructor(parts: ConstraintParts) {
    this.parts = parts
  }

  /** `before`: the last tokens of the log. */
  make(grammar: CallGrammar, before: ReadonlyArray<number>): CallConstraint {
    return new CallConstraint(this, grammar, before)
  }

  /** Fails typed where the grammar cannot be read. */
  grammar(source: CallGrammar, root: string): Promise<LlamaGrammar> {
    const text = source.rules + this.#marks(source)
    const key = `${root}\n${text}`
    const known = this.#grammars.get(key)
    if (known !== undefined) return known
    const made = this.parts.model.llama.createGrammar({ grammar: text, rootRuleName: root }).catch((cause: unknown) => {
      throw new EngineError({ reason: "failed", message: "The grammar of a call could not be read.", cause })
    })
    this.#grammars.set(key, made)
    const oldest = this.#grammars.keys().next().value
    if (this.#grammars.size > keptGrammars && oldest !== undefined) this.#grammars.delete(oldest)
    return made
  }

  /**
   * A mark that is one token of the vocabulary is written as that token, not in pieces. One that ends the turn is left
   * out: no grammar may name such a token, and behind a complete one the sampler allows nothing else.
   */
  #marks({ marks }: CallGrammar): string {
    const { guard, encode } = this.parts.tokenizer
    return Object.entries(marks)
      .map(([name, text]) => {
        const ids = encode(text, true, false)
        if (ids.length !== 1 || !guard.ids.has(ids[0]!)) return `${name} ::= ${literal(text)}\n`
        return `${name} ::= ${this.parts.model.isEogToken(ids[0] as Token) ? '""' : `<[${ids[0]}]>`}\n`
      })
      .join("")
  }
}

export class CallConstraint {
  readonly #owner: Constraints
  readonly #grammar: CallGrammar
  readonly #watch: CallWatch
  #before: ReadonlyArray<number>
  #state: LlamaGrammarEvaluationState | undefined
  #opener: CallOpener | undefined

  constructor(owner: Constraints, grammar: CallGrammar, before: ReadonlyArray<number>) {
    this.#owner = owner
    this.#grammar = grammar
    this.#before = before
    this.#watch = new CallWatch(grammar, owner.parts.detokenize(before, []))
    this.#opener = this.#watch.inside
  }

  /** What the library asks for before each token. */
  readonly state = (): LlamaGrammarEvaluationState | undefined => this.#state

  /** Is a call being held at this moment? */
  get armed(): boolean {
    return this.#state !== undefined
  }

  /** To be awaited before each token is asked for: a call that began needs its grammar. */
  async ready(): Promise<void> {
    if (this.#opener === undefined) return
    const { root } = this.#opener
    this.#opener = undefined
    const grammar = await this.#owner.grammar(this.#grammar, root)
    const { library, model } = this.#owner.parts
    this.#state = new library.LlamaGrammarEvaluationState({ model, grammar })
  }

  get waits(): boolean {
    return this.#opener !== undefined
  }

  /** Takes a generated token; returns what stands in its place when it ran past the beginning of a call. */
  take(token: number): ReadonlyArray<number> | undefined {
    const { detokenize, tokenizer } = this.#owner.parts
    const text = detokenize([token], this.#before)
    const seen = this.#watch.take(text)
    if (seen._tag === "released") this.#state = undefined
    let replaced: ReadonlyArray<number> | undefined
    if (seen._tag === "armed") {
      if (seen.past > 0) {
        const kept = text.slice(0, -seen.past)
        replaced = tokenizer.encode(kept, false, false)
        // Where the beginning cannot be written alone the call stays free.
        if (detokenize(replaced, this.#before) !== kept) return undefined
      }
      this.#opener = seen.opener
    }
    this.#before = replaced ?? [token]
    return replaced
  }
}
