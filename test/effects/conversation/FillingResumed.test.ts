/** Files that end in the middle of a turn: each comes to the file of an undisturbed run, and no effect happens twice. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Conversation, turnEvents } from "../../../src/effects/conversation/Conversation.ts"
import * as ConversationText from "../../../src/effects/conversation/ConversationText.ts"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import { blank, conversation, declared, fill, Home, shape, text, use, user } from "../../kit/fillings.ts"

const saves = use("save", { name: "a.txt", content: "abc" })
const engine = [
  { raw: "<tool_call>\n{broken\n</tool_call>" },
  { blocks: [saves, use("add", { a: 1, b: "x" }), use("send", { to: "ann" })] },
  { text: "saved and sent" },
  { text: "and again" }
]

const start = Effect.map(Home, ({ registry }) =>
  conversation(declared(registry, "save", "add", "send"), user("Save and send."), blank, user("More?"), blank)
)

const reparsed = (file: Conversation) => {
  const parsed = ConversationText.parse(text(file))
  assert.strictEqual(parsed._tag, "Success")
  return parsed._tag === "Success" ? parsed.success : file
}

/** An undisturbed run, in a home of its own. */
const whole = Effect.gen(function* () {
  return yield* fill({ conversation: yield* start, engine })
}).pipe(Effect.provide(Layer.fresh(Home.layer)))

/** What is left when the process dies once the file was saved `saves` times: the file, and nothing of the run. */
const cutAfter = (saved: number) =>
  Effect.gen(function* () {
    const files: Array<Conversation> = []
    const died = yield* Effect.exit(
      fill(
        { conversation: yield* start, engine },
        {
          save: (now) =>
            Effect.suspend(() => {
              if (files.length === saved) return Effect.die(new Error("killed"))
              files.push(structuredClone(now) as Conversation)
              return Effect.void
            })
        }
      )
    )
    return { died: died._tag === "Failure", file: files.at(-1) }
  })

it.effect(
  "from every point at which the file was saved, it comes to the same file, and every effect happens once",
  () =>
    Effect.gen(function* () {
      const undisturbed = yield* whole
      assert.strictEqual(undisturbed.stop?._tag, "Completed")
      const steps = undisturbed.saved.length
      assert.isAtLeast(steps, 6)
      for (let saved = 0; saved < steps; saved++) {
        yield* Effect.gen(function* () {
          const { died, file } = yield* cutAfter(saved)
          assert.isTrue(died, `after ${saved}`)
          const { counts } = yield* Home
          // The one that died left a record, whatever its name.
          counts.set("c", 0)
          const resumed = yield* fill({ conversation: reparsed(file ?? (yield* start)), engine }, { recorded: () => 1 })
          assert.strictEqual(text(resumed.conversation), text(undisturbed.conversation), `after ${saved} saves`)
          assert.deepStrictEqual(
            resumed.performed.toSorted(),
            undisturbed.performed.toSorted(),
            `effects after ${saved} saves`
          )
          for (const { runId } of resumed.runs) {
            assert.deepStrictEqual(validateText(resumed.traceOf(runId)).violations, [], `${runId} after ${saved}`)
          }
        }).pipe(Effect.provide(Home.layer))
      }
    })
)

const endings = Effect.map(whole, ({ conversation: { meta, session } }) => ({
  "a blank slot behind results": { meta, session: session.slice(0, 4) },
  "calls without an answer": { meta, session: session.slice(0, 2) },
  "fewer results than calls": {
    meta,
    session: [
      session[0]!,
      session[1]!,
      { ...session[2]!, content: (session[2]!.content as ReadonlyArray<never>).slice(0, 1) }
    ]
  },
  "results and no slot": { meta, session: session.slice(0, 3) }
}))

it.effect("each dangling ending is finished: the calls that have no result run, the others do not", () =>
  Effect.gen(function* () {
    const undisturbed = yield* whole
    for (const [name, cut] of Object.entries(yield* endings)) {
      // As it is when the process died there: calls without results have no events either.
      const answered = new Set(
        cut.session.flatMap(({ content }) =>
          Array.isArray(content) ? content.flatMap((block) => ("tool_use_id" in block ? [block.tool_use_id] : [])) : []
        )
      )
      const session = cut.session.map((message) => {
        if (message.trace === undefined)
          return message.content === undefined || message.role !== "assistant" ? message : blank
        const events = message.trace.events.filter(
          ({ attributes, name }) =>
            (name !== turnEvents.call && name !== turnEvents.artifact) || answered.has(String(attributes["id"]))
        )
        return { ...message, trace: { ...message.trace, events } }
      })
      const file = {
        meta: cut.meta,
        session: name === "a blank slot behind results" ? [...session.slice(0, 3), blank] : session
      }
      const { conversation: now, performed } = yield* Effect.provide(
        fill({ conversation: reparsed(file), engine }),
        Home.layer
      )
      assert.deepStrictEqual(shape(now), shape(undisturbed.conversation).slice(0, 4), name)
      assert.deepStrictEqual(now.session, undisturbed.conversation.session.slice(0, 4), name)
      const expected = {
        "a blank slot behind results": [],
        "results and no slot": [],
        "calls without an answer": undisturbed.performed,
        "fewer results than calls": ['send:{"to":"ann"}']
      }[name]
      assert.deepStrictEqual(performed, expected, name)
    }
  })
)

it.effect("calls that somebody wrote are executed once, in the middle of a file as at its end", () =>
  Effect.gen(function* () {
    const { registry } = yield* Home
    const written = { role: "assistant", content: [{ ...saves, id: "mine" }] } as const
    const file = conversation(declared(registry, "save"), user("Save."), written, user("Thanks."), blank)
    const { conversation: now, performed } = yield* fill({
      conversation: file,
      engine: [{ text: "saved" }, { text: "welcome" }]
    })
    assert.deepStrictEqual(shape(now), ["user", "assistant(save)", "tool(1)", "assistant", "user", "assistant"])
    assert.deepStrictEqual(now.session[1], written)
    assert.deepStrictEqual(performed, ['save:{"name":"a.txt","content":"abc"}'])
    const again = yield* fill({ conversation: file, engine: [{ text: "saved" }, { text: "welcome" }] })
    assert.strictEqual(text(again.conversation), text(now))
    assert.strictEqual(performed.length, 1)
  }).pipe(Effect.provide(Home.layer))
)

it.effect("a file that was emptied and is filled again does everything again, under keys of its own", () =>
  Effect.gen(function* () {
    const file = yield* start
    const first = yield* fill({ conversation: file, engine })
    const second = yield* fill({ conversation: file, engine })
    assert.strictEqual(second.performed.filter((done) => done.startsWith("send")).length, 2)
    const underOf = ({ session }: Conversation) =>
      session[1]?.trace?.events.find(({ name }) => name === turnEvents.keyed)?.attributes["under"]
    assert.notStrictEqual(underOf(first.conversation), underOf(second.conversation))
  }).pipe(Effect.provide(Home.layer))
)

it.effect("a call that waits for an approval stays open, and goes on when the file is run again", () =>
  Effect.gen(function* () {
    const file = yield* start
    const { Approval, suspendAll } = yield* Effect.promise(() => import("../../../src/effects/Policy.ts"))
    const waiting = yield* fill({ conversation: file, engine }).pipe(Effect.provideService(Approval, suspendAll))
    assert.strictEqual(waiting.stop?._tag, "AwaitingApproval")
    assert.deepStrictEqual(shape(waiting.conversation).slice(0, 2), ["user", "assistant(save,add,send)"])
    const allowed = yield* fill({ conversation: reparsed(waiting.conversation), engine })
    assert.strictEqual(text(allowed.conversation), text((yield* whole).conversation))
  }).pipe(Effect.provide(Home.layer))
)

it.effect("an answer that was asked for is the result of the call that asked", () =>
  Effect.gen(function* () {
    const { registry } = yield* Home
    const file = conversation(declared(registry, "clarify"), user("Do it."), blank)
    const script = [{ blocks: [use("clarify", { question: "Which one?" })] }, { text: "the red one then" }]
    const asked = yield* fill({ conversation: file, engine: script })
    assert.deepStrictEqual(asked.stop, { _tag: "NeedsInput", question: "Which one?" })
    assert.deepStrictEqual(shape(asked.conversation), ["user", "assistant(clarify)"])
    const told = yield* fill({ conversation: asked.conversation, engine: script }, { answer: "the red one" })
    assert.deepStrictEqual(told.conversation.session[2]?.content, [
      { type: "tool_result", tool_use_id: "call_1_0", content: "the red one" }
    ])
  }).pipe(Effect.provide(Home.layer))
)
