/** Calls whose effect is in the ledger's own transaction, through the whole loop. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { EffectLedger, layerMemory, layerNone } from "../../src/actors/EffectLedger.ts"
import { layerSqlite } from "../../src/actors/EffectLedgerSqlite.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { strict } from "../../src/effects/Profile.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { directory } from "../kit/ledgerAt.ts"
import { calls, lines } from "../kit/script.ts"
import { addRow, type NoteOptions, noteTool } from "../kit/stagedTool.ts"

const place = Effect.map(directory, (path) => join(path, "ledger.sqlite"))

const notes = (path: string): ReadonlyArray<unknown> => {
  const db = new DatabaseSync(path, { readOnly: true })
  const made = db.prepare("select 1 from sqlite_master where name = 'notes'").get() !== undefined
  const rows = made ? db.prepare("select n from notes order by n").all() : []
  db.close()
  return rows.map(({ n }) => n)
}

const turn = calls(["add_note", { n: 7 }])

/** One run with one call. Its trace is sound, and a replay is the same, whatever becomes of the call. */
const note = (ledger: Layer.Layer<EffectLedger, unknown>, options: NoteOptions = {}, run: Partial<RunOptions> = {}) =>
  Effect.gen(function* () {
    const tools = yield* noteTool(options)
    const outcome = yield* Agent.run({ task: "t", system: "S", trace: { content: true }, ...run, tools })
    const text = (yield* MemoryTraces).text(outcome.runId)
    const events = lines(text)
    const records = text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => readLine(Buffer.from(line)) as TraceRecord)
    assert.deepStrictEqual(validateText(text).violations, [])
    assert.deepStrictEqual(yield* replay(records, { tools }), { same: true, compared: records.length })
    const entries = yield* (yield* EffectLedger).list()
    const of = (type: string) => events.filter(({ event_type }) => event_type === type).map(({ data }) => data)
    return { stop: outcome.stop, of, entries, answer: of("tool_result_committed")[0]!["answer"] as string }
  }).pipe(
    Effect.provideService(Approval, allowAll),
    Effect.provide(Layer.provideMerge(ledger, layerScripted({ turns: [turn, "Done."] })), { local: true })
  )

const failure = (answer: string) =>
  JSON.parse(answer) as { kind: string; errors: [{ reason: string }]; retry_hint?: string }

describe("a call that stages its effect", () => {
  it.live("has it when the model is told so, once for its key, by whichever run it is asked for", () =>
    Effect.gen(function* () {
      const path = yield* place
      for (const replayed of [false, true]) {
        const evidence = { source: "probe", describes: "the row" } as const
        const noted = yield* note(layerSqlite({ path }), { terms: { evidence, reversible: false } })
        assert.strictEqual(noted.answer, '{"ok":true,"result":"noted 7"}')
        const [settled] = noted.of("effect_settled")
        assert.deepInclude(settled, { status: "settled_ok", replayed })
        if (!replayed) assert.deepStrictEqual(settled!["evidence"], { source: "probe" })
        assert.deepStrictEqual(notes(path), [7])
      }
    })
  )

  it.live("whose statement is refused has failed and left nothing; the same may be tried anew", () =>
    Effect.gen(function* () {
      const path = yield* place
      const bad = yield* note(layerSqlite({ path }), { also: () => [{ sql: "insert into nowhere values (1)" }] })
      assert.deepInclude(failure(bad.answer), { kind: "execution_failed" })
      assert.match(failure(bad.answer).errors[0].reason, /statement 3 of 3 was refused: no such table: nowhere/)
      assert.deepInclude(bad.of("tool_execution_finished")[0], { ok: false, effect: "none", class: "postcondition" })
      assert.deepInclude(bad.of("effect_settled")[0], { status: "settled_failed" })
      assert.strictEqual(bad.entries[0]!.standing, "settled")
      assert.deepStrictEqual(notes(path), [])
      const good = yield* note(layerSqlite({ path }))
      assert.strictEqual(good.answer, '{"ok":true,"result":"noted 7"}')
      assert.deepStrictEqual(notes(path), [7])
    })
  )

  it.live("that fails, crashes or is cut after it has staged leaves nothing, and that is known", () =>
    Effect.gen(function* () {
      const refuses = new ToolError({ kind: "refused", message: "no" })
      const cases: ReadonlyArray<readonly [after: NonNullable<NoteOptions["after"]>, kind: string]> = [
        [() => Effect.fail(refuses), "refused"],
        [() => Effect.die(new Error("bug")), "crashed"],
        [() => Effect.never, "timed_out"]
      ]
      for (const [after, kind] of cases) {
        const path = yield* place
        const noted = yield* note(layerSqlite({ path }), { after }, { limits: { toolMillis: 100 } })
        assert.strictEqual(failure(noted.answer).kind, kind)
        assert.deepInclude(noted.of("tool_execution_finished")[0], { effect: "none" })
        assert.strictEqual(noted.entries[0]!.standing, "settled")
        assert.strictEqual(noted.stop._tag, "Completed")
        assert.deepStrictEqual(notes(path), [])
      }
    })
  )

  it.live("and answers after its time leaves nothing either", () =>
    Effect.gen(function* () {
      const path = yield* place
      const noted = yield* note(
        layerSqlite({ path }),
        { after: () => Effect.sleep(150) },
        { limits: { toolMillis: 50 } }
      )
      assert.strictEqual(failure(noted.answer).kind, "timed_out")
      assert.isUndefined(noted.entries[0]!.entry.late)
      assert.deepStrictEqual(notes(path), [])
    })
  )

  it.live("needs no person to confirm it where every other effect does", () =>
    Effect.gen(function* () {
      const path = yield* place
      const noted = yield* note(layerSqlite({ path }), {}, { gates: { profile: strict } })
      assert.deepInclude(noted.of("effect_settled")[0], { status: "settled_ok" })
      assert.deepStrictEqual(notes(path), [7])
    })
  )
})

describe("a call that may not stage", () => {
  it.live("for want of a database is refused before its tool runs, and told what would help", () =>
    Effect.gen(function* () {
      for (const ledger of [layerMemory(), layerNone]) {
        let ran = false
        const after = () => Effect.sync(() => void (ran = true))
        const noted = yield* note(ledger, { after })
        assert.isFalse(ran)
        const told = failure(noted.answer)
        assert.strictEqual(told.kind, "contract_fault")
        assert.match(told.retry_hint!, /--ledger/)
        assert.deepInclude(noted.of("tool_call_rejected")[0], {
          class: "contract_fault",
          stage: "ledger",
          effect: "none"
        })
        assert.deepStrictEqual(noted.entries, [])
      }
    })
  )

  it.live("because its contract does not say so, or with artifacts, or too much of it: nothing is executed", () =>
    Effect.gen(function* () {
      const produces = Effect.map(ToolContext, ({ produce }) =>
        produce({ name: "a.txt", mediaType: "text/plain", bytes: new Uint8Array(1) })
      )
      const undeclared = { stages: undefined } as never
      const cases: ReadonlyArray<readonly [options: NoteOptions, kind: string, effect: string, why: RegExp]> = [
        [{ terms: undeclared }, "bad_result", "present", /does not say stages/],
        [{ terms: { ...(undeclared as object), ledger: "none" } }, "bad_result", "present", /does not say stages/],
        [{ after: () => produces }, "bad_result", "none", /artifacts/],
        [{ also: () => Array.from({ length: 63 }, () => addRow(1, "")) }, "bad_result", "none", /65 with/],
        [{ also: () => [addRow(1, "x".repeat(1024 * 1024))] }, "bad_result", "none", /at most 64 with 1048576/],
        [{ also: () => [{ sql: "select 1", parameters: [new Date(0) as never] }] }, "crashed", "none", /parameter \$1/],
        [{ also: () => [{ sql: "select 1", rows: -1 }] }, "crashed", "none", /number of rows/]
      ]
      for (const [options, kind, effect, why] of cases) {
        const path = yield* place
        const noted = yield* note(layerSqlite({ path }), options)
        const told = failure(noted.answer)
        assert.strictEqual(told.kind, kind)
        assert.match(told.errors[0].reason, why)
        assert.deepInclude(noted.of("tool_execution_finished")[0], { effect })
        assert.deepStrictEqual(notes(path), [])
      }
    })
  )

  it.effect("is not registered: a tool that reads, is of another mode, or would look at its promise from outside", () =>
    Effect.gen(function* () {
      for (const ledger of ["none", "external"] as const) {
        const error = yield* Effect.flip(noteTool({ terms: { ledger } }))
        assert.match(error.message, /ledger mode "atomic"/)
      }
      const reads = yield* Effect.flip(noteTool({ terms: { risk: "read" } }))
      assert.match(reads.message, /what stages statements acts/)
      const post = { post: () => Effect.succeed({ _tag: "Holds" }) } as never
      const looks = yield* Effect.flip(noteTool({ terms: post }))
      assert.match(looks.message, /its post is "result"/)
    })
  )
})
