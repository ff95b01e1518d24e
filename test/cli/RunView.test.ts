import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { askWith } from "../../src/cli/Approvers.ts"
import { block, count, cut, duration, inline, size } from "../../src/cli/Printable.ts"
import { RunView } from "../../src/cli/RunView.ts"
import type { Screen } from "../../src/cli/Screen.ts"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import type { Outcome } from "../../src/effects/Outcome.ts"
import type { Stop } from "../../src/effects/State.ts"

const plain = (text: string): string => text

const screenOf = (columns = 60, terminal = false) => {
  let text = ""
  let now = 0
  const progress: Array<string> = []
  const screen: Screen = {
    paint: { bold: plain, dim: plain, red: plain, green: plain, cyan: plain, yellow: plain },
    columns,
    write: (more) => {
      text += more
    },
    line: (more = "") => {
      text += `${more}\n`
    },
    progress: (more) => {
      progress.push(more)
    },
    terminal,
    directions: terminal,
    hold: () => {},
    now: () => now
  }
  const pass = (millis: number) => {
    now += millis
  }
  return { screen, said: () => text, progress, pass }
}

const shown = (...events: ReadonlyArray<AgentEvent>): string => {
  const { said, screen } = screenOf()
  const view = new RunView(screen)
  for (const event of events) view.event(event)
  return said()
}

const evil = "a\u001b]0;title\u0007\u001b[2J\u202eb\r\n\tc"

describe("text on its way to a terminal", () => {
  it("cannot send a control character or turn the line around", () => {
    assert.strictEqual(inline(evil), "a\\u001b]0;title\\u0007\\u001b[2J\\u202eb\\r\\n\\tc")
    assert.strictEqual(block(evil), "a\\u001b]0;title\\u0007\\u001b[2J\\u202eb\n\tc")
    for (let code = 0; code < 0x2100; code++) {
      const character = String.fromCharCode(code)
      assert.notMatch(inline(character), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/)
    }
  })

  it("is cut at whole characters", () => {
    assert.deepStrictEqual(
      [cut("🦀🦀🦀", 3), cut("🦀🦀🦀🦀", 3), cut("abc", 3), cut("abcd", 3)],
      ["🦀🦀🦀", "🦀🦀…", "abc", "ab…"]
    )
    assert.strictEqual(cut("x".repeat(1e6), 5), "xxxx…")
  })

  it("gives numbers in words", () => {
    assert.deepStrictEqual([count(1, "call"), count(0, "call")], ["1 call", "0 calls"])
    assert.deepStrictEqual([2.84, 850, 1900, 125_000].map(duration), ["2.8 ms", "850 ms", "1.9 s", "2 min 5 s"])
    assert.deepStrictEqual([712, 2_260_000, 48e9].map(size), ["712 bytes", "2.3 MB", "48 GB"])
  })
})

describe("a run on the screen", () => {
  it("is its turns, calls and results, whatever they contain", () => {
    const text = shown(
      { _tag: "StateEntered", state: "Generating", turn: 0 },
      { _tag: "Text", turn: 0, text: "Let me\nsee" },
      { _tag: "CallProposed", callId: "c", tool: "read", arguments: { path: evil } },
      { _tag: "CallFinished", callId: "c", tool: "read", answer: { ok: true, result: evil }, millis: 2 },
      { _tag: "CallFinished", callId: "d", tool: "other", answer: { ok: true, result: 1 }, millis: 2 },
      {
        _tag: "CallRejected",
        callId: "e",
        tool: "x\u001b",
        answer: { ok: false, kind: "unknown_tool", errors: [{ path: "name", reason: "no" }] }
      }
    )
    assert.notInclude(text, "\u001b")
    const lines = text.split("\n")
    assert.deepStrictEqual(lines.slice(0, 4), ["", "turn 1", "  Let me", "  see"])
    assert.match(lines[4]!, /^ {2}→ read path: "a/)
    assert.match(lines[5]!, /^ {2}← a\\u001b/)
    assert.strictEqual(lines[6], "  ← other: 1  2 ms", "a result that does not follow its call says whose it is")
    assert.strictEqual(lines[7], "  ✗ x\\u001b: unknown tool: name: no")
    for (const line of lines) assert.isAtMost([...line].length, 60)
  })

  it("says why a call was refused, below it where the line is too short", () => {
    const { said, screen } = screenOf(40, true)
    const view = new RunView(screen)
    const reason = "the policy of this run does not allow post_letter with these arguments"
    const errors = [{ path: "", reason }]
    view.event({ _tag: "CallProposed", callId: "c", tool: "post_letter", arguments: { to: "bob" } })
    view.event({
      _tag: "CallRejected",
      callId: "c",
      tool: "post_letter",
      answer: { ok: false, kind: "refused", errors }
    })
    view.event({ _tag: "CallRejected", callId: "d", tool: "send", answer: { ok: false, kind: "dry_run", errors } })
    view.event({ _tag: "Malformed", turn: 0, code: "c", reason: "the arguments are no JSON object\u001b[2J" })
    assert.deepStrictEqual(said().split("\n"), [
      '  → post_letter to: "bob"',
      "  ✗ refused: the policy of this run does",
      "    not allow post_letter with these",
      "    arguments",
      "  – send was not executed: this is a dry",
      "    run",
      "  ✗ malformed call: the arguments are no",
      "    JSON object\\u001b[2J",
      ""
    ])
  })

  it("is wrapped at words in a narrow window, from what is said before it to what it wrote", () => {
    const { said, screen } = screenOf(40, true)
    const view = new RunView(screen)
    const notice = "The tiny demo model: it knows a few tasks only. Name a real one with --model."
    const resumed = "continuing 20261201-041830-d0bdf8 from turn 3; 2 calls known"
    view.header({ model: "m", codec: "c", tools: [], task: "t", directory: "d", notice, resumed })
    const artifact = { name: "a", bytes: 80, sha256: "a9bed48d96a57ed47cf6" }
    view.event({ _tag: "ArtifactWritten", callId: "c", artifact } as unknown as AgentEvent)
    assert.deepStrictEqual(said().split("\n"), [
      "The tiny demo model: it knows a few",
      "tasks only. Name a real one with",
      "--model.",
      "model      m, codec c",
      "tools      none",
      "task       t",
      "run        d",
      "continuing 20261201-041830-d0bdf8 from",
      "turn 3; 2 calls known",
      "  + artifact a, 80 bytes, sha256",
      "    a9bed48d96a57ed4…",
      ""
    ])
  })

  it("says how much left a context that was full", () => {
    const text = shown({ _tag: "Compacted", exchanges: 2, removed: 5, before: 900, after: 300 })
    assert.include(text, "(the context was full: 2 old exchanges left it)")
  })

  it("takes back what turned out not to be an answer", () => {
    const text = shown({ _tag: "Text", turn: 0, text: "half" }, { _tag: "Retracted", turn: 0, reason: "rolled_back" })
    assert.strictEqual(text, "  half\n  (not an answer: rolled back)\n")
  })

  it("says in one line which way the model has sent it, and nothing where the caller has", () => {
    const routed = (route: "chat" | "task", by: "model" | "caller" | "chat") => shown({ _tag: "Routed", route, by })
    assert.strictEqual(routed("chat", "model"), "  (taken for a chat: no tools)\n")
    assert.strictEqual(routed("task", "model"), "  (taken for a task)\n")
    assert.strictEqual(routed("task", "chat"), "  (this is a task: it goes on with the tools)\n")
    assert.deepStrictEqual([routed("chat", "caller"), routed("task", "caller")], ["", ""])
  })
})

describe("the answer on a screen", () => {
  const said = (terminal: boolean, ...events: ReadonlyArray<AgentEvent>): string => {
    const { said, screen } = screenOf(24, terminal)
    const view = new RunView(screen)
    for (const event of [...events, { _tag: "StateEntered", state: "Generating", turn: 1 } as const]) view.event(event)
    return said().replace("\n\u001b[1mturn 2\u001b[0m\n", "").replace("\nturn 2\n", "")
  }
  const pieces = (text: string, size = 3, kind: "Text" | "Reasoning" = "Text"): ReadonlyArray<AgentEvent> =>
    (text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []).map((piece) => ({ _tag: kind, turn: 0, text: piece }))
  const long = "The quick brown fox jumps over the lazy dog, twice.\n\n- one item that goes on\n"

  it("is wrapped at words where a person reads it, however it arrives", () => {
    const wrapped = [
      "  The quick brown fox",
      "  jumps over the lazy",
      "  dog, twice.",
      "",
      "  - one item that goes",
      "    on",
      ""
    ].join("\n")
    for (const size of [1, 3, 7, 999]) assert.strictEqual(said(true, ...pieces(long, size)), wrapped, String(size))
  })

  it("leaves code and addresses to the terminal, so that they can be copied", () => {
    const text = "See\n```\nconst aaaaaaaaaaaaaaaaaaaa = bbbbbbbbbbb\n```\nhttps://host.test/a/very/long/address now"
    assert.strictEqual(
      said(true, ...pieces(text)),
      "  See\n  ```\n  const aaaaaaaaaaaaaaaaaaaa = bbbbbbbbbbb\n  ```\n  https://host.test/a/very/long/address now\n"
    )
  })

  it("tells a terminal which way a paragraph reads, ahead of its margin", () => {
    const out = said(true, ...pieces("مرحبا بك في هذا البرنامج الجديد\nok"))
    assert.match(out, /^\u001b\[2 k {2}مرحبا/)
    for (const line of out.split("\n").slice(0, -1)) assert.match(line, /^(?:\u001b\[\d k)* {2}\S/)
  })

  it("is as it is where another program reads it, and what is held back is not lost before something else is said", () => {
    assert.strictEqual(said(false, ...pieces("a b c d e f g h i j k l m n o p")), "  a b c d e f g h i j k l m n o p\n")
    const finished: AgentEvent = { _tag: "Generated", turn: 0, tokens: 90, millis: 2_000, ended: true }
    assert.strictEqual(said(true, ...pieces("I see"), finished), "  I see\n  (90 tokens at 45.0 tokens/s)\n")
    const thought = [...pieces("hm hm", 2, "Reasoning"), ...pieces("It is 5.")]
    assert.strictEqual(said(true, ...thought), "  hm hm\n  It is 5.\n")
  })
})

describe("long work on the screen", () => {
  const watch = () => {
    const { pass, progress, said, screen } = screenOf()
    const view = new RunView(screen)
    /** What stands there after it. */
    const shows = (...events: ReadonlyArray<AgentEvent>): string | undefined => {
      for (const event of events) view.event(event)
      return progress.at(-1)
    }
    const later = (millis: number): string | undefined => {
      pass(millis)
      view.tick()
      return progress.at(-1)
    }
    return { shows, later, said, view, now: () => progress.at(-1) }
  }

  it("is the model that loads in percent, then its context, with the time that has passed", () => {
    const { later, now, view } = watch()
    view.starting()
    assert.strictEqual(now(), "starting the engine …")
    assert.strictEqual(later(2_400), "starting the engine … 2 s")
    view.loading(0.419)
    assert.strictEqual(now(), "loading the model, 41 % … 2 s")
    view.loading(1)
    assert.strictEqual(later(60_000), "the model is loaded, its context is being made … 1 min 2 s")
    view.loaded(62_400)
    assert.deepStrictEqual([now(), later(5_000)], ["", ""], "nothing goes on any more")
  })

  it("is what the model reads, and how fast it writes what is not shown yet", () => {
    const { shows, later, now, said } = watch()
    assert.strictEqual(shows({ _tag: "Prefill", done: 512, total: 4096 }), "reading, 512 of 4096 tokens …")
    assert.strictEqual(later(1_000), "reading, 512 of 4096 tokens … 1 s")
    assert.strictEqual(shows({ _tag: "StateEntered", state: "Generating", turn: 0 }), "the model is thinking …")
    const written = (tokens: number, millis: number, ended = false): AgentEvent => {
      return { _tag: "Generated", turn: 0, tokens, millis, ended }
    }
    assert.strictEqual(shows(written(34, 800)), "writing, 34 tokens at 42.5 tokens/s …")
    shows({ _tag: "Text", turn: 0, text: "I see" }, written(40, 900))
    assert.strictEqual(later(9_000), "writing, 34 tokens at 42.5 tokens/s …", "text on the screen is not drawn over")
    shows(written(90, 2_000, true))
    assert.strictEqual(now(), "")
    assert.strictEqual(said(), "\nturn 1\n  I see\n  (90 tokens at 45.0 tokens/s)\n")
  })

  it("is the tools that run, and the call that waits for somebody", () => {
    const { shows, later, now } = watch()
    const started = (callId: string, tool: string): AgentEvent => ({ _tag: "CallStarted", callId, tool })
    const answer = { ok: true, result: 1 } as const
    assert.strictEqual(
      shows({ _tag: "ApprovalRequested", callId: "a", tool: "send\u001b" }),
      "send\\u001b waits for an approval …"
    )
    assert.strictEqual(later(3_000), "send\\u001b waits for an approval … 3 s")
    shows({ _tag: "ApprovalDecided", callId: "a", tool: "send\u001b", decision: "allow", by: "ada" })
    assert.strictEqual(now(), "")
    assert.strictEqual(shows(started("a", "send"), started("b", "fetch")), "send, fetch are running …")
    assert.strictEqual(later(4_000), "send, fetch are running … 4 s")
    const one = shows({ _tag: "CallFinished", callId: "a", tool: "send", answer, millis: 1 })
    assert.strictEqual(one, "fetch is running … 4 s")
    assert.strictEqual(shows({ _tag: "CallFinished", callId: "b", tool: "fetch", answer, millis: 1 }), "")
  })
})

describe("the end of a run", () => {
  const endOf = (stop: Stop, columns = 200): ReadonlyArray<string> => {
    const { said, screen } = screenOf(columns, true)
    const millis = { total: 234, model: 1, tools: 2, orchestration: 231 }
    const outcome = { stop, millis, turns: 1, toolCalls: 0, artifacts: [], usage: { outputTokens: 4 } }
    new RunView(screen).closing(outcome as unknown as Outcome, undefined, { _tag: "Nothing" })
    return said().split("\n").slice(1)
  }
  const spent = "234 ms: model 1 ms, tools 2 ms, orchestration 231 ms"

  it("is a sentence, and apart from it what it took", () => {
    assert.strictEqual(endOf({ _tag: "Completed", text: "x" })[0], `done in ${spent}`)
    const failed = endOf({ _tag: "Failed", class: "engine", message: "Not found. Check the address." })
    assert.deepStrictEqual(failed.slice(0, 2), ["failed (engine): Not found. Check the address.", `it took ${spent}`])
    const detail = "send (call-0-0): its outcome is unknown"
    assert.deepStrictEqual(endOf({ _tag: "Escalated", detail }).slice(0, 2), [`stopped: ${detail}`, `it took ${spent}`])
    const narrow = endOf({ _tag: "Failed", class: "engine", message: "Not found. Check the address." }, 30)
    assert.deepStrictEqual(narrow.slice(0, 2), ["failed (engine): Not found.", "Check the address."])
  })

  it("says apart from the rest what a person took to answer", () => {
    const { pass, said, screen } = screenOf(200)
    const view = new RunView(screen)
    for (const [by, millis] of [
      ["person", 200],
      ["nobody", 10]
    ] as const) {
      view.event({ _tag: "ApprovalRequested", callId: "a", tool: "send" })
      pass(millis)
      view.event({ _tag: "ApprovalDecided", callId: "a", tool: "send", decision: "deny", by })
    }
    const millis = { total: 234, model: 1, tools: 2, orchestration: 231 }
    const stop: Stop = { _tag: "Completed", text: "x" }
    const outcome = { stop, millis, turns: 1, toolCalls: 0, artifacts: [], usage: { outputTokens: 4 } }
    view.closing(outcome as unknown as Outcome, undefined, { _tag: "Nothing" })
    assert.include(said(), "done in 234 ms: model 1 ms, tools 2 ms, orchestration 31 ms, your answers 200 ms\n")
  })

  it("is wrapped at words in a narrow window, and its paths and commands stay whole", () => {
    const { said, screen } = screenOf(40, true)
    const millis = { total: 10_100, model: 27, tools: 65, orchestration: 10_000 }
    const usage = { outputTokens: 51 }
    const tracePath = "/somewhere/else/20261201-041830-d0bdf8/trace.jsonl"
    const sha256 = "0".repeat(64)
    const artifacts = [{ path: "a/report.md", sha256 }]
    const stop: Stop = { _tag: "Completed", text: "x" }
    const outcome = { stop, millis, turns: 3, toolCalls: 2, artifacts, usage, tracePath }
    const text = "recorded without content, so it cannot be continued; --trace-content makes runs resumable"
    new RunView(screen).closing(outcome as unknown as Outcome, undefined, { _tag: "Hint", text })
    assert.deepStrictEqual(said().split("\n"), [
      "",
      "done in 10.1 s: model 27 ms, tools 65",
      "ms, orchestration 10 s",
      "3 turns, 2 calls, 51 tokens generated;",
      "loading took 0 ms",
      "artifact   a/report.md",
      `sha256 ${sha256}`,
      "trace",
      tracePath,
      "recorded without content, so it cannot",
      "be continued; --trace-content makes runs",
      "resumable",
      "next",
      `npx writ trace inspect ${tracePath}`,
      ""
    ])
  })

  it("names the flag that makes a context larger", () => {
    const detail = "It holds 512. Shorten the conversation, or open the model with a larger context."
    assert.match(endOf({ _tag: "ContextExhausted", detail })[0]!, /larger context \(--context TOKENS\)\.$/)
  })
})

describe("asking for an approval", () => {
  const request = {
    runId: "run-1",
    callId: "c",
    tool: "send",
    risk: "external",
    arguments: { to: "a\u001bb" },
    digest: "d",
    cost: 0,
    hazard: 0,
    reversible: false,
    evidence: { source: "self", describes: "the tool's own answer" }
  } as const
  const decide = (...answers: ReadonlyArray<string | undefined>) => {
    const left = [...answers]
    const questions: Array<string> = []
    const ask = (question: string) =>
      Effect.sync(() => {
        questions.push(question)
        return left.shift()
      })
    return Effect.map(
      askWith(ask, { screen: screenOf().screen, caughtUp: () => Effect.void }).decide(request),
      (decision) => ({ decision, questions })
    )
  }

  it.effect("shows tool, risk and all arguments, and takes yes, no and stop", () =>
    Effect.gen(function* () {
      const { decision, questions } = yield* decide("y")
      assert.strictEqual(decision, "allow")
      for (const part of ["send", "external", "\\u001b"]) assert.include(questions[0], part)
      assert.strictEqual((yield* decide("NO")).decision, "deny")
      assert.strictEqual((yield* decide("stop")).decision, "suspend")
    })
  )

  it.effect("asks again after anything else, and takes silence for no", () =>
    Effect.gen(function* () {
      const { decision, questions } = yield* decide("maybe", "", "yes")
      assert.deepStrictEqual([decision, questions.length], ["allow", 3])
      assert.strictEqual((yield* decide(undefined)).decision, "deny")
    })
  )

  it.effect(
    "says once that nothing can be answered any more, and that all that is asked from now on is taken as no",
    () =>
      Effect.gen(function* () {
        const { said, screen } = screenOf(40, true)
        const { decide } = askWith(() => Effect.undefined, { screen, caughtUp: () => Effect.void })
        const decisions = [yield* decide(request), said(), yield* decide(request), said()]
        const told = "  (Ctrl-D ended the input: this, and\n  everything asked from now on, is taken\n  as no)\n"
        assert.deepStrictEqual(decisions, ["deny", told, "deny", told])
      })
  )
})
