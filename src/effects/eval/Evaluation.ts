/**
 * A suite over conversations: every case's every assertion decided, in suite order within a conversation, conversations side
 * by side. Writes no report; judges leave their transcripts.
 */
import * as Effect from "effect/Effect"
import type { Assertion } from "./assertions/Kinds.ts"
import { byType } from "./assertions/Kinds.ts"
import type { Around, Place } from "./Kind.ts"
import { type Match, match, type Named } from "./Matching.ts"
import { Subject } from "./Subject.ts"
import { type Case, type Suite, unnamed } from "./Suite.ts"
import { malformed, type Verdict } from "./Verdict.ts"

export interface Decided {
  readonly class: string
  readonly verdict: Verdict
  /** Absent where no conversation was there to be asserted about. */
  readonly assertion?: Assertion
}

export interface Matched {
  readonly conversation: string
  readonly assertions: ReadonlyArray<Decided>
}

export interface EvaluatedCase {
  readonly name: string | undefined
  readonly matches: ReadonlyArray<Matched>
  /** Why no conversation matched, where that may be meant. */
  readonly unmatched?: string
}

export interface Evaluated {
  readonly suite: string
  readonly cases: ReadonlyArray<EvaluatedCase>
  /** Distinct conversations that some case matched, in order. */
  readonly conversations: ReadonlyArray<Named>
}

export interface EvaluationOptions {
  /** Conversations evaluated side by side: 4 unless given. A judge answers one question at a time. */
  readonly concurrency?: number
  /** Called after each conversation. */
  readonly onProgress?: (done: number, total: number) => void
}

const missing = (name: string): Matched => ({
  conversation: name,
  assertions: [
    {
      class: "missing_conversation",
      verdict: malformed(`there is no conversation ${name}: the case names no file there is`)
    }
  ]
})

const decided = (assertion: Assertion, subject: Subject, around: Around, place: Place): Effect.Effect<Decided> => {
  const verdict = byType.get(assertion.type)!.decide(assertion, subject, around, place)
  const as = (verdict: Verdict): Decided => ({ class: assertion.type, verdict, assertion })
  return Effect.isEffect(verdict) ? Effect.map(verdict, as) : Effect.succeed(as(verdict))
}

/** All cases that match one conversation, in suite order: what a script says is there for a judge that comes later. */
const overOne = Effect.fnUntraced(function* (
  named: Named,
  cases: ReadonlyArray<{ readonly case: Case; readonly index: number }>,
  around: Around
) {
  const subject = new Subject(named.name, named.conversation)
  const found = new Map<number, Matched>()
  for (const { case: one, index } of cases) {
    const place = (ordinal: number): Place => ({ case: one.name ?? unnamed(index), index, ordinal })
    const assertions = yield* Effect.forEach(one.assertions, (assertion, ordinal) =>
      decided(assertion, subject, around, place(ordinal))
    )
    found.set(index, { conversation: named.name, assertions })
  }
  return found
})

const caseOf = (one: Case, index: number, matched: Match, found: ReadonlyMap<Named, ReadonlyMap<number, Matched>>) => {
  const name = one.name
  if (matched._tag === "Missing") return { name, matches: [missing(matched.name)] }
  if (matched._tag === "None") return { name, matches: [], unmatched: matched.why }
  return { name, matches: matched.conversations.map((named) => found.get(named)!.get(index)!) }
}

/** Names must be distinct; `all` is looked at in its order. */
export const evaluate = Effect.fnUntraced(function* (
  suite: Suite,
  all: ReadonlyArray<Named>,
  around: Around,
  { concurrency = 4, onProgress }: EvaluationOptions = {}
): Effect.fn.Return<Evaluated> {
  const matches = suite.cases.map((one) => match(one, all))
  const casesOf = new Map<Named, Array<{ readonly case: Case; readonly index: number }>>(all.map((one) => [one, []]))
  for (const [index, matched] of matches.entries()) {
    if (matched._tag !== "Some") continue
    for (const named of matched.conversations) casesOf.get(named)!.push({ case: suite.cases[index]!, index })
  }
  const conversations = all.filter((one) => casesOf.get(one)!.length > 0)
  let done = 0
  const found = yield* Effect.forEach(
    conversations,
    (named) =>
      Effect.map(overOne(named, casesOf.get(named)!, around), (matched) => {
        onProgress?.(++done, conversations.length)
        return [named, matched] as const
      }),
    { concurrency }
  )
  const byNamed = new Map(found)
  return {
    suite: suite.name,
    conversations,
    cases: suite.cases.map((one, index) => caseOf(one, index, matches[index]!, byNamed))
  }
})
