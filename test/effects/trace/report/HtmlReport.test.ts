import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { firstRows, lastRows } from "../../../../src/effects/trace/report/EventTable.ts"
import { ofText, type Report } from "../../../../src/effects/trace/report/HtmlReport.ts"
import { type ContractedName, contracted } from "../../../kit/contractTraces.ts"
import { foreign, hostile, invisible, unpacked } from "../../../kit/page.ts"
import { play } from "../../../kit/run.ts"
import { call, calls } from "../../../kit/script.ts"
import { type GoodName, good } from "../../../kit/traces.ts"

const pageOf = (report: Report): string => report.pieces.join("")
const page = (text: string | Uint8Array): string => pageOf(ofText(text))

const section = (text: string, id: string): string => {
  const from = text.indexOf(`<section id="${id}"`)
  return text.slice(from, text.indexOf("</section>", from))
}

/** Every text inside a value goes through `change`; names of fields too. */
const mapped = (value: unknown, change: (text: string) => string): unknown => {
  if (typeof value === "string") return change(value)
  if (Array.isArray(value)) return value.map((one) => mapped(one, change))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapped(one, change)]))
}

interface Raw {
  t_ms: number
  event_type: string
  step: string
  data: Record<string, unknown>
}

const edited = (text: string, edit: (line: Raw, index: number) => unknown): string =>
  text
    .trimEnd()
    .split("\n")
    .map((line, index) => JSON.stringify(edit(JSON.parse(line) as Raw, index)))
    .join("\n")

const attribute = (tag: string, name: string): number => Number(new RegExp(` ${name}="([0-9.]+)%?"`).exec(tag)?.[1])

/** The bars of a lane: class, place and width in percent. */
const bars = (text: string, lane: string) =>
  [...section(text, "timeline").matchAll(new RegExp(`<rect class="bar ${lane} ([a-z]+)"[^>]*>`, "g"))].map((found) => ({
    state: found[1]!,
    x: attribute(found[0], "x"),
    y: attribute(found[0], "y"),
    width: attribute(found[0], "width")
  }))

const line = (seq: number, event_type: string, t_ms: number, step: string, data: object) =>
  JSON.stringify({ schema: "writ.trace.v1", run_id: "r", seq, event_type, t_ms, step, phase: null, data })

describe("HtmlReport", () => {
  for (const name of Object.keys(good) as Array<GoodName>) {
    it.effect(`shows a run with ${name}: nothing foreign, one bar per turn and execution`, () =>
      Effect.gen(function* () {
        const text = yield* Effect.scoped(good[name])
        const report = ofText(text)
        const shown = pageOf(report)
        assert.deepStrictEqual(foreign(shown), [])
        assert.isTrue(report.verdict.ok)
        assert.include(section(shown, "problems"), "The validator found none.")
        const events = text
          .trimEnd()
          .split("\n")
          .map((one) => JSON.parse(one) as Raw)
        const starts = (type: string) => events.filter((one) => one.event_type === type)
        const turns = new Set(starts("model_call_started").map(({ data }) => data["turn"]))
        assert.strictEqual(bars(shown, "model").length, turns.size)
        assert.strictEqual(bars(shown, "tool").length, starts("tool_execution_started").length)
        assert.strictEqual(shown.split('<tr class="k-').length - 1, events.length)
        for (const one of bars(shown, "model")) assert.isAtMost(one.x + one.width, 100.001)
      })
    )
  }

  const shows: ReadonlyArray<readonly [name: ContractedName, said: ReadonlyArray<RegExp>]> = [
    [
      "not ready",
      [/blocked by pre/, /Refused: precondition_failed<\/strong> \(precondition, raised by precondition\)/]
    ],
    ["not worth it", [/do_nothing is worth most/, /Scores: call-0-0 -3\.5, do_nothing 0/, /raised by governor/]],
    ["no longer ready", [/precondition no longer held after approval/]],
    [
      "retried by key",
      [
        /waits 1[^<]{0,8}s after try 1 of 4 \(timeout\)/,
        /<li>try 3<\/li>/,
        /settled ok/,
        /Evidence: probe: \{&quot;balance&quot;:1\}/
      ]
    ],
    [
      "lost and unclear",
      [/looked: unclear/, /ambiguous/, /left to a person/, /Try 1, after 0[^:]*: unavailable, effect unknown/]
    ],
    ["denied twice", [/goes for what was refused at event 11; the same was proposed before, at event 11/]],
    ["dry run", [/Refused: dry_run<\/strong> \(cancelled, raised by execution\)/]]
  ]
  for (const [name, said] of shows) {
    it.effect(`shows what decided about a call and what was tried: ${name}`, () =>
      Effect.gen(function* () {
        const text = yield* contracted[name]
        const report = ofText(text)
        const shown = pageOf(report)
        assert.isTrue(report.verdict.ok)
        assert.deepStrictEqual(foreign(shown), [])
        for (const part of said) assert.match(section(shown, "conversation"), part)
        const waits = text.split('"event_type":"retry_scheduled"').length - 1
        const asked = text.split('"event_type":"approval_requested"').length - 1
        assert.strictEqual(bars(shown, "wait").length, waits + asked)
      })
    )
  }

  it.effect("shows a malformed attempt as one, in its turn", () =>
    Effect.gen(function* () {
      const shown = section(page(yield* good.malformed), "conversation")
      assert.match(shown, /\(not a call\)/)
      assert.match(shown, /schema failed/)
      assert.match(shown, /never became a call/)
    })
  )

  it.effect("whatever stands in a trace stays text", () =>
    Effect.gen(function* () {
      const names: ReadonlyArray<GoodName> = [
        "artifact",
        "denied",
        "malformed",
        "invalid arguments",
        "resumed with an answer"
      ]
      const gated = [contracted["not worth it"], contracted["retried by key"], contracted["lost and unclear"]]
      const traces = yield* Effect.all([...names.map((name) => Effect.scoped(good[name])), ...gated])
      const text = fc.oneof(fc.constantFrom(...hostile), fc.string({ unit: "binary" }))
      fc.assert(
        fc.property(fc.constantFrom(...traces), text, fc.nat(60), (trace, evil, at) => {
          const shown = page(
            edited(trace, (one, index) => ({
              ...one,
              data: mapped(one.data, (old) => (index === at ? evil : `${old}${evil}`))
            }))
          )
          assert.deepStrictEqual(foreign(shown), [])
          assert.notMatch(shown, invisible)
        }),
        { numRuns: 100 }
      )
      for (const evil of hostile) {
        const shown = page(
          edited(traces[0]!, (one) => ({ ...one, run_id: evil || "r", event_type: evil, step: evil, phase: evil }))
        )
        assert.deepStrictEqual(foreign(shown), [])
        assert.notMatch(shown, invisible)
      }
    })
  )

  it.effect("names that a model made up are shown, not obeyed", () =>
    Effect.gen(function* () {
      const evil = '</code><script src="//example.org">\u202e\u001b[31m'
      const { text } = yield* play([calls([evil, { a: evil }], ["save", { name: "a.txt", content: evil }]), evil])
      const shown = page(text)
      assert.deepStrictEqual(foreign(shown), [])
      assert.notMatch(shown, invisible)
      assert.include(section(shown, "conversation"), "&lt;/code&gt;&lt;script src=&quot;//example.org&quot;&gt;")
      assert.include(section(shown, "conversation"), '<span class="ctl">\\u202e</span>')
      assert.include(section(shown, "summary"), '<span class="ctl">\\u001b</span>')
    })
  )

  it.effect("a text of 5 MB is cut with a note, and a nest without end does not end the report", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("add", { a: 1, b: 1 }), "done"])
      const long = page(
        edited(text, (one) => ({
          ...one,
          data: mapped(one.data, (old) => (old === "done" ? "<".repeat(5_000_000) : old))
        }))
      )
      assert.isBelow(long.length, 1_000_000)
      assert.include(long, "of 5\u202f000\u202f000 characters are shown")
      const nest = `${"[".repeat(50_000)}${"]".repeat(50_000)}`
      const [first, ...rest] = text.split("\n")
      const deep = page(
        [
          first,
          line(1, "tool_call_validated", 1, "model-0", {}).replace(
            '"data":{}',
            `"data":{"call":"c","tool":"t","arguments":${nest}}`
          ),
          ...rest
        ].join("\n")
      )
      assert.include(deep, "cannot be shown")
    })
  )

  it("a bar is as long as its work: from its start to its own finish, in the right proportion", () => {
    const shown = page(
      [
        line(0, "run_started", 0, "run", { task: "t", limits: {}, content: true }),
        line(1, "model_call_started", 100, "model-0", { turn: 0, attempt: 0 }),
        line(2, "model_call_finished", 300, "model-0", { turn: 0, attempt: 0 }),
        line(3, "tool_execution_started", 300, "tool-0", { call: "a", tool: "x" }),
        line(4, "tool_execution_started", 300, "tool-1", { call: "b", tool: "y" }),
        line(5, "tool_execution_finished", 400, "tool-1", { call: "b", tool: "y", ok: false }),
        line(6, "tool_execution_finished", 700, "tool-0", { call: "a", tool: "x", ok: true }),
        line(7, "approval_requested", 700, "model-0", { call: "c", tool: "z" }),
        line(8, "approval_decided", 750, "model-0", { call: "c", tool: "z", decision: "deny" }),
        line(9, "model_call_started", 800, "model-1", { turn: 1, attempt: 0 }),
        line(10, "turn_rolled_back", 900, "model-1", { turn: 1, reason: "limit" }),
        line(11, "run_terminated", 1000, "finalize", { reason: "limit" })
      ].join("\n")
    )
    const [first, second] = bars(shown, "model")
    assert.deepInclude(first, { state: "good", x: 10, width: 20 })
    assert.deepInclude(second, { state: "rolled", x: 80, width: 10 })
    assert.strictEqual(section(shown, "timeline").split('class="hatch"').length, 2)
    const [x, y] = bars(shown, "tool")
    assert.deepInclude(x, { state: "good", x: 30, width: 40 })
    assert.deepInclude(y, { state: "bad", x: 30, width: 10 })
    assert.notStrictEqual(x!.y, y!.y, "calls side by side do not hide each other")
    assert.deepInclude(bars(shown, "wait")[0], { state: "bad", x: 70, width: 5 })
  })

  it("work without an end goes on to the end of the record and is marked", () => {
    const shown = page(
      [
        line(0, "run_started", 0, "run", { task: "t", limits: {}, content: true }),
        line(1, "tool_execution_started", 50, "tool-0", { call: "a", tool: "x" }),
        line(2, "generation_token", 100, "model-0", { count: 1 }),
        '{"schema":"writ.tr'
      ].join("\n")
    )
    assert.deepInclude(bars(shown, "tool")[0], { state: "open", x: 50, width: 50 })
    assert.include(section(shown, "problems"), "Line 4 (byte ")
    assert.include(section(shown, "summary"), "unfinished")
  })

  it.effect("problems of the trace are named by their invariant", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("add", { a: 1, b: 1 }), "done"])
      const lines = text.trimEnd().split("\n")
      const shown = page([...lines.slice(0, 5), ...lines.slice(6)].join("\n"))
      assert.match(section(shown, "problems"), /<strong>T04<\/strong>/)
      assert.match(section(shown, "problems"), /<strong>T05<\/strong>/)
      assert.match(section(shown, "summary"), /badge bad">.*problems/)
    })
  )

  it.effect("without content nothing but sizes is shown, also of files beside the trace", () =>
    Effect.gen(function* () {
      const options = { trace: { content: false }, task: "SECRET" }
      const { text } = yield* play([call("save", { name: "SECRET.txt", content: "SECRET" }), "SECRET"], options)
      const directory = mkdtempSync(join(tmpdir(), "writ-report-"))
      const [artifact] = text.split("\n").filter((one) => one.includes("artifact_written"))
      const { sha256 } = (JSON.parse(artifact!) as Raw).data
      writeFileSync(join(directory, `${String(sha256).slice(0, 16)}-SECRET.txt`), "SECRET")
      const shown = pageOf(ofText(text, { artifacts: directory }))
      rmSync(directory, { recursive: true })
      assert.notInclude(shown, "SECRET")
      assert.include(section(shown, "summary"), "recorded without content")
      assert.include(section(shown, "artifacts"), String(sha256))
    })
  )

  it.effect("previews are of plain files in the artifacts directory with the recorded hash only", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("save", { name: "a.txt", content: "CANARY" }), "saved"])
      const root = mkdtempSync(join(tmpdir(), "writ-report-"))
      const directory = join(root, "artifacts")
      mkdirSync(directory)
      const artifact = text.split("\n").find((one) => one.includes("artifact_written"))
      const id = String((JSON.parse(artifact!) as Raw).data["artifact_id"])
      const shown = (named: string) =>
        section(pageOf(ofText(text.replaceAll(id, named), { artifacts: directory })), "artifacts")
      writeFileSync(join(directory, id), "CANARY")
      assert.include(shown(id), "<pre>CANARY</pre>")
      writeFileSync(join(root, "outside"), "CANARY")
      symlinkSync(join(root, "outside"), join(directory, "link"))
      for (const named of ["../outside", "link", "..", ".", "none"]) assert.notInclude(shown(named), "CANARY", named)
      writeFileSync(join(directory, id), "CANARY, but another one")
      assert.notInclude(shown(id), "CANARY")
      assert.include(shown(id), "the file is another one")
      rmSync(root, { recursive: true })
    })
  )

  it.effect("the narrative and the record stand side by side: reasoning is folded, checks and answers are shown", () =>
    Effect.gen(function* () {
      const { text } = yield* play([calls(["add", { a: 1, b: 1 }], ["nope", {}]), "It is 2."])
      const shown = section(page(text), "conversation")
      assert.match(shown, /<code>add<\/code>[\s\S]*<\/span> schema<\/span>/)
      assert.include(shown, "Refused: unknown_tool")
      assert.include(shown, "What the model was told")
      const reasoned = edited(text, (one) =>
        one.event_type === "assistant_action_parsed" ? { ...one, data: { ...one.data, reasoning: "BECAUSE" } } : one
      )
      assert.include(page(reasoned), "<details><summary>Reasoning</summary><pre>BECAUSE</pre></details>")
    })
  )

  it("a long trace shows its beginning and its end, says how much is between, and packs all of it", () => {
    const many = firstRows + lastRows + 500
    const lines = [line(0, "run_started", 0, "run", { task: "t", limits: {}, content: true })]
    for (let seq = 1; seq < many; seq++) lines.push(line(seq, "generation_token", seq, "model-0", { count: 1 }))
    const shown = page(lines.join("\n"))
    assert.deepStrictEqual(foreign(shown), [])
    assert.strictEqual(shown.split('<tr class="k-').length - 1, firstRows + lastRows)
    assert.include(shown, "500 events between these are not shown")
    const place = (seq: number) => shown.indexOf(`id="event-${seq}"`)
    assert.isAbove(place(firstRows - 1), 0)
    assert.strictEqual(place(firstRows), -1)
    assert.isAbove(place(many - lastRows), place(firstRows - 1))
    assert.isAbove(place(many - 1), place(many - lastRows))
    const rows = unpacked(shown)
    assert.deepStrictEqual(
      rows.map((row) => Number(row.split("\t")[2])),
      Array.from({ length: many }, (_, seq) => seq)
    )
    assert.strictEqual(rows[7], '0 \t\t7\t0.007\tmodel-0\tgeneration_token\t{"count":1}')
  })

  it("a trace whose rows are all on the page packs nothing", () => {
    const lines = [line(0, "run_started", 0, "run", { task: "t", limits: {}, content: true })]
    for (let seq = 1; seq < firstRows + lastRows; seq++) lines.push(line(seq, "generation_token", seq, "model-0", {}))
    const shown = page(lines.join("\n"))
    assert.deepStrictEqual(unpacked(shown), [])
    assert.notInclude(shown, "between these")
    assert.strictEqual(shown.split('<tr class="k-').length - 1, firstRows + lastRows)
  })

  it("a long conversation shows its first and its last turns, and every link of the page leads somewhere", () => {
    const lines = [line(0, "run_started", 0, "run", { task: "t", limits: {}, content: true })]
    const turns = 700
    for (let turn = 0; turn < turns; turn++) {
      const at = turn * 10
      const step = `model-${turn}`
      const call = { call: `c${turn}`, tool: "add" }
      lines.push(
        line(lines.length, "model_call_started", at, step, { turn, attempt: 0 }),
        line(lines.length + 1, "model_call_finished", at + 4, step, { turn, attempt: 0, text: `SAID ${turn}.` }),
        line(lines.length + 2, "tool_call_validated", at + 4, step, { ...call, arguments: { a: turn } }),
        line(lines.length + 3, "tool_execution_started", at + 5, `tool-${turn}`, call),
        line(lines.length + 4, "tool_execution_finished", at + 9, `tool-${turn}`, { ...call, ok: true })
      )
    }
    lines.push(line(lines.length, "run_completed", turns * 10, "finalize", { final_text: "THE END" }))
    const shown = page(lines.join("\n"))
    const told = section(shown, "conversation")
    const isTold = (turn: number) => told.includes(`<pre>SAID ${turn}.</pre>`)
    assert.deepStrictEqual([0, 399, 400, 599, 600, 699].map(isTold), [true, true, false, false, true, true])
    assert.include(told, "200 messages and turns, with their calls, are not shown here")
    assert.strictEqual(told.split('<div class="call"').length - 1, 500)
    assert.isAbove(told.indexOf("THE END"), told.indexOf(`id="turn-699"`))
    const ids = new Set([...shown.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
    const dead = [...shown.matchAll(/ href="#([^"]+)"/g)].filter(([, id]) => !ids.has(id!))
    assert.deepStrictEqual(dead, [])
    assert.strictEqual(ids.size, [...shown.matchAll(/ id="([^"]+)"/g)].length, "no id is there twice")
  })

  it("tries of a call are drawn inside its bar, with the waits between them beside it", () => {
    const call = { call: "a", tool: "x" }
    const shown = page(
      [
        line(0, "run_started", 0, "run", { task: "t", limits: {}, content: true }),
        line(1, "effect_intent", 100, "tool-0", { ...call, attempt: 1 }),
        line(2, "tool_execution_started", 100, "tool-0", call),
        line(3, "retry_scheduled", 200, "tool-0", { ...call, attempt: 1, of: 3, delay_ms: 90 }),
        line(4, "effect_intent", 300, "tool-0", { ...call, attempt: 2 }),
        line(5, "retry_scheduled", 400, "tool-0", { ...call, attempt: 2, of: 3, delay_ms: 100 }),
        line(6, "tool_execution_finished", 700, "tool-0", { ...call, ok: true }),
        line(7, "run_completed", 1000, "finalize", { final_text: "" })
      ].join("\n")
    )
    assert.deepInclude(bars(shown, "tool")[0], { x: 10, width: 60 })
    const tries = [...shown.matchAll(/<rect class="attempt"[^>]*>/g)].map(([rect]) => [
      attribute(rect, "x"),
      attribute(rect, "width")
    ])
    // The second by its intent; the third has none, so by the plan.
    assert.deepStrictEqual(tries, [
      [10, 10],
      [30, 10],
      [50, 20]
    ])
    assert.include(shown, "x: 600 ms, from 100 ms, 3 tries")
    assert.deepStrictEqual(
      bars(shown, "wait").map(({ width, x }) => [x, width]),
      [
        [20, 9],
        [40, 10]
      ]
    )
  })

  it("a file that is no trace makes a page that says so", () => {
    for (const text of ["", "\n\n", "hello\n", "{}\n"]) {
      const shown = page(text)
      assert.deepStrictEqual(foreign(shown), [])
      assert.include(section(shown, "summary"), "no events")
    }
  })
})
