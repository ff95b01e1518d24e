/** Conversations, surroundings and reports for tests of evaluations: small, and each part can be said. */
import * as Effect from "effect/Effect"
import type { Block, Conversation, Message, TurnTrace } from "../../src/effects/conversation/Conversation.ts"
import type { Assertion } from "../../src/effects/eval/assertions/Kinds.ts"
import { byType } from "../../src/effects/eval/assertions/Kinds.ts"
import type { JudgeEngine } from "../../src/effects/eval/JudgeEngine.ts"
import type { Around } from "../../src/effects/eval/Kind.ts"
import type { Report } from "../../src/effects/eval/Report.ts"
import { sizeOf, tallyOf } from "../../src/effects/eval/Report.ts"
import { Subject } from "../../src/effects/eval/Subject.ts"
import type { Outcome, Verdict } from "../../src/effects/eval/Verdict.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"

export const user = (content: string): Message => ({ role: "user", content })
export const assistant = (content?: string | ReadonlyArray<Block>, trace?: TurnTrace): Message => ({
  role: "assistant",
  ...(content === undefined ? {} : { content }),
  ...(trace === undefined ? {} : { trace })
})
export const blank: Message = { role: "assistant" }
export const use = (id: string, name: string, input: JsonObject = {}): Block => ({ type: "tool_use", id, name, input })
export const result = (id: string, content = "ok", is_error?: boolean): Block => ({
  type: "tool_result",
  tool_use_id: id,
  content,
  ...(is_error === undefined ? {} : { is_error })
})
export const answers = (...content: ReadonlyArray<Block>): Message => ({ role: "tool", content })

export const event = (name: string, attributes: JsonObject) => ({ name, attributes })

/** `settled("c1", "add")` ran and is fine. */
export const settled = (id: string, tool: string, more: JsonObject = {}) =>
  event("call_settled", { id, tool, outcome: "ok", effect: "none", executed: true, ...more })

export const trace = (events: TurnTrace["events"] = [], figures: Partial<TurnTrace> = {}): TurnTrace => ({
  span_id: "s",
  model: "noop",
  tokens: { input: 10, output: 5 },
  latency_ms: 20,
  events,
  ...figures
})

export const talk = (session: ReadonlyArray<Message>, binding?: Readonly<Record<string, string>>): Conversation => ({
  meta: { model: "noop", ...(binding === undefined ? {} : { binding }) },
  session
})

/** Asked, called `add`, answered: with the record of a run. */
export const ran: Conversation = talk([
  user("What is 2 plus 3?"),
  assistant([{ type: "text", text: "I add." }, use("c1", "add", { a: 2, b: 3 })], trace([settled("c1", "add")])),
  answers(result("c1", "5")),
  assistant("It is 5.", trace([event("run_ended", { state: "completed" })]))
])

export const nowhere: Around = { root: "/", judges: "/nowhere", env: {} }

/** What one assertion comes to. */
export const decide = (
  assertion: Assertion,
  conversation: Conversation,
  around: Around = nowhere,
  subject = new Subject("sum", conversation)
): Effect.Effect<Verdict> => {
  const verdict = byType
    .get(assertion.type)!
    .decide(assertion, subject, around, { case: "case-0", index: 0, ordinal: 0 })
  return Effect.isEffect(verdict) ? verdict : Effect.succeed(verdict)
}

/** A judge with these replies; one that has no more fails. Remembers what it was asked. */
export const scriptedJudge = (replies: ReadonlyArray<string>): JudgeEngine & { readonly asked: Array<string> } => {
  const left = [...replies]
  const asked: Array<string> = []
  return {
    model: "scripted judge",
    asked,
    ask: (_, question) =>
      Effect.suspend(() => {
        asked.push(question)
        const text = left.shift()
        return text === undefined
          ? Effect.fail(new EngineError({ reason: "lost", message: "the engine is gone" }))
          : Effect.succeed({ text, raw: text, tokens: { input: 7, output: 3 }, millis: 4 })
      })
  }
}

interface Shape {
  readonly case?: string
  readonly conversation?: string
  readonly outcomes: ReadonlyArray<readonly [kind: string, outcome: Outcome]>
}

/** A report of these matches, its sums right. */
export const reportOf = (runId: string, shapes: ReadonlyArray<Shape>, more: Partial<Report> = {}): Report => {
  const cases = shapes.map(({ case: name, conversation = "default", outcomes }) => ({
    ...(name === undefined ? {} : { name }),
    matches: [
      {
        conversation,
        assertions: outcomes.map(([kind, outcome]) => ({
          class: kind,
          outcome,
          ...(outcome === "pass" ? {} : { reason: `${outcome}, says the test` })
        }))
      }
    ]
  }))
  const all = cases.flatMap(({ matches }) => matches.flatMap(({ assertions }) => assertions))
  const classes = [...new Set(all.map((one) => one.class))].sort()
  return {
    suite: "checks",
    run_id: runId,
    timestamp: "2026-11-30T12:00:00.000Z",
    totals: {
      conversations_matched: new Set(shapes.map(({ conversation = "default" }) => conversation)).size,
      assertions: tallyOf(all.map(({ outcome }) => outcome))
    },
    per_class: Object.fromEntries(
      classes.map((kind) => [kind, tallyOf(all.filter((one) => one.class === kind).map(({ outcome }) => outcome))])
    ),
    cases,
    ...more
  }
}

/** Complaints where the sums of a report do not agree. */
export const sumsOf = ({ cases, per_class, totals }: Report): ReadonlyArray<string> => {
  const all = cases.flatMap(({ matches }) => matches.flatMap(({ assertions }) => assertions))
  const whole = tallyOf(all.map(({ outcome }) => outcome))
  const classes = Object.values(per_class)
  return Object.entries(whole).flatMap(([key, n]) => {
    const name = key as keyof typeof whole
    const summed = classes.reduce((sum, tally) => sum + tally[name], 0)
    return totals.assertions[name] === n && summed === n && sizeOf(whole) === all.length
      ? []
      : [`${name}: cases ${n}, totals ${totals.assertions[name]}, classes ${summed}`]
  })
}
