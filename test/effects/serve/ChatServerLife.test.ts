/** Requests that end otherwise than with an answer, many at a time, and the end of the server. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { suspendAll } from "../../../src/effects/Policy.ts"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import { EngineError } from "../../../src/engine/EngineError.ts"
import type { ScriptedTurn } from "../../../src/engine/ScriptedModel.ts"
import { call } from "../../kit/script.ts"
import { hello, post, raw, type Serving, serving, until, wire } from "../../kit/serve.ts"

const assertValid = (trace: string) => {
  const { complete, ok, violations } = validateText(trace)
  assert.deepStrictEqual({ complete, ok, violations }, { complete: true, ok: true, violations: [] })
}

const hangs: ScriptedTurn = { text: ["It ", "is ", "42."], fault: { kind: "hang", before: 2 } }

const metricsOf = ({ url }: Serving) =>
  Effect.promise(() => fetch(`${url}/metrics`).then((response) => response.text()))

const answerOf = (body: unknown) => {
  const { choices, error, writ } = body as {
    choices?: ReadonlyArray<{ finish_reason: string; message: { content: string | null } }>
    error?: { code: string }
    writ?: object
  }
  return { content: choices?.[0]?.message.content, finish: choices?.[0]?.finish_reason, code: error?.code, writ }
}

/** Events of a stream, as they came. */
const eventsOf = (text: string): ReadonlyArray<string> =>
  text.split("\n\n").flatMap((event) => (event.startsWith("data: ") ? [event.slice("data: ".length)] : []))

describe("what a run comes to", () => {
  it.live("is a question where it asks for something", () =>
    Effect.gen(function* () {
      const { trace, url } = yield* serving([call("clarify", { question: "Which file?" })])
      const { body, status } = yield* post(url, hello)
      assert.deepStrictEqual([status, answerOf(body)], [
        200,
        { content: "Which file?", finish: "stop", code: undefined, writ: { stop: "needs_input" } }
      ] as never)
      assertValid(trace(1))
    })
  )

  it.live("is half an answer, and no more of it than was asked for", () =>
    Effect.gen(function* () {
      const { trace, url } = yield* serving(["one two three four five six"])
      const { body } = yield* post(url, { ...hello, max_tokens: 2 })
      assert.deepStrictEqual(answerOf(body), {
        content: "one two ",
        finish: "length",
        code: undefined,
        writ: undefined
      })
      assert.strictEqual((body as { usage: { completion_tokens: number } }).usage.completion_tokens, 2)
      assertValid(trace(1))
    })
  )

  it.live("is nothing, by its length, where another limit was reached", () =>
    Effect.gen(function* () {
      const { trace, url } = yield* serving([call("add", { a: 1, b: 2 })], { limits: { modelTurns: 1 } })
      const { body } = yield* post(url, hello)
      assert.deepStrictEqual(answerOf(body), {
        content: "",
        finish: "length",
        code: undefined,
        writ: { stop: "limit", limit: "model_turns" }
      })
      assertValid(trace(1))
    })
  )

  it.live("ends where the client said, in a stream as well", () =>
    Effect.gen(function* () {
      const { url } = yield* serving(["one END two", { text: ["one E", "ND two"] }], { withTools: false })
      const whole = yield* post(url, { ...hello, stop: ["END"] })
      assert.strictEqual(answerOf(whole.body).content, "one ")
      const { text } = yield* post(url, { ...hello, stop: "END", stream: true })
      const contents = eventsOf(text)
        .filter((event) => event !== "[DONE]")
        .map((event) => JSON.parse(event).choices[0].delta.content ?? "")
      assert.strictEqual(contents.join(""), "one ")
    })
  )

  it.live.each([
    ["approval_required", 403, [call("send", { to: "ann" })], { approver: suspendAll, alone: true }],
    ["engine_failed", 500, [{ text: ["a", "b"], fault: { kind: "failed", before: 1 } }], {}],
    ["context_length_exceeded", 400, ["x"], { script: { contextTokens: 40 } }],
    ["loop_detected", 422, [1, 2, 3].map(() => call("add", { a: 1, b: 2 })), {}],
    ["internal_error", 500, [{ text: ["a", "b"], fault: { kind: "defect", before: 1 } }], {}]
  ] as const)("is an error with a code of its own: %s", ([code, status, turns, options]) =>
    Effect.gen(function* () {
      const server = yield* serving(turns as ReadonlyArray<ScriptedTurn | string>, options)
      const { body, headers, ...response } = yield* post(server.url, hello)
      assert.deepStrictEqual([response.status, answerOf(body).code], [status, code])
      // What a run has done stays done: nobody should repeat it by themselves.
      assert.strictEqual(headers.get("x-should-retry"), "false")
      assert.strictEqual(headers.get("x-writ-run-id"), "run-1")
      assertValid(server.trace(1))
    })
  )

  it.live("is refused calls told to the model, where nobody can be asked", () =>
    Effect.gen(function* () {
      const { performed, trace, url } = yield* serving([call("send", { to: "ann" }), "I may not send it."])
      const { body } = yield* post(url, hello)
      assert.strictEqual(answerOf(body).content, "I may not send it.")
      assert.deepStrictEqual(performed, [])
      assertValid(trace(1))
    })
  )
})

describe("a stream", () => {
  it.live("tells text as it is written where no call can come", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* serving([hangs], { withTools: false })
        const { close, heard, say } = yield* wire(server.url)
        say(raw(JSON.stringify({ ...hello, stream: true })))
        yield* until(() => heard().includes('"is "'))
        assert.notInclude(heard(), 'finish_reason":"')
        close()
        yield* until(() => server.trace(1).includes("run_cancelled"))
        assertValid(server.trace(1))
      })
    )
  )

  it.live("says that somebody is still there while nothing can be told", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving([hangs], { serving: { keepAliveMillis: 20 } })
        const { heard, say } = yield* wire(url)
        say(raw(JSON.stringify({ ...hello, stream: true })))
        yield* until(() => heard().split(": still there").length > 3)
        assert.notInclude(heard(), "It ")
      })
    )
  )

  it.live("that is aborted by the openai client cancels the run, and the session answers the next one", () =>
    Effect.gen(function* () {
      const { client, contexts, trace, url } = yield* serving([hangs, "Again."], { withTools: false, sessions: 1 })
      yield* Effect.promise(async () => {
        const stream = await client.chat.completions.create({ ...hello, stream: true })
        for await (const chunk of stream) if (chunk.choices[0]?.delta.content === "is ") break
      })
      yield* until(() => trace(1).includes("run_cancelled"))
      assertValid(trace(1))
      assert.strictEqual(answerOf((yield* post(url, hello)).body).content, "Again.")
      assert.lengthOf(contexts(), 1)
      assert.notInclude(contexts()[0]!, "It is")
    })
  )

  it.live("that its client does not take holds up nothing, and ends after a while", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const much: ScriptedTurn = { text: Array.from({ length: 50 }, () => "much ".repeat(20_000)) }
        const server = yield* serving([much, "Hello."], {
          withTools: false,
          sessions: 1,
          trace: { content: false },
          serving: { stallMillis: 300, queue: 0, keepAliveMillis: 10 }
        })
        const { say } = yield* wire(server.url, true)
        say(raw(JSON.stringify({ ...hello, stream: true })))
        // The run is over long before; its client has the connection, not the session.
        yield* until(() => server.trace(1).includes("run_completed"))
        const inside = () => metricsOf(server).pipe(Effect.map((text) => /in_flight (\d)/.exec(text)?.[1]))
        assert.strictEqual(yield* inside(), "1")
        while ((yield* inside()) === "1");
        assert.strictEqual(answerOf((yield* post(server.url, hello)).body).content, "Hello.")
        assertValid(server.trace(1))
      })
    )
  )

  it.live("that fails says so in an event, which the openai client throws", () =>
    Effect.gen(function* () {
      const turn = (kind: "failed" | "defect"): ScriptedTurn => ({ text: ["It ", "is "], fault: { kind, before: 1 } })
      const { client } = yield* serving([turn("failed"), turn("defect")], { withTools: false })
      const failing = Effect.promise(async () => {
        try {
          for await (const _ of await client.chat.completions.create({ ...hello, stream: true })) {
          }
        } catch (error) {
          return (error as { readonly code: string }).code
        }
        return undefined
      })
      assert.deepStrictEqual([yield* failing, yield* failing], ["engine_failed", "internal_error"])
    })
  )
})

describe("many requests", () => {
  it.live("on few sessions are all answered, each on a record that holds", () =>
    Effect.gen(function* () {
      const turns = Array.from({ length: 20 }, (_, at): ScriptedTurn => ({ text: `answer ${at}`, millisPerToken: 1 }))
      const server = yield* serving(turns, { sessions: 4 })
      const ask = (at: number) =>
        post(server.url, { ...hello, messages: [{ role: "user", content: `question ${at}` }], stream: at % 2 === 0 })
      const all = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, at) => at),
        ask,
        { concurrency: "unbounded" }
      )
      assert.isTrue(all.every(({ status }) => status === 200))
      const said = new Set(
        all.map(({ body, text }) =>
          body === undefined
            ? eventsOf(text)
                .filter((event) => event !== "[DONE]")
                .map((event) => JSON.parse(event).choices[0].delta.content ?? "")
                .join("")
            : answerOf(body).content
        )
      )
      assert.lengthOf(said, 20)
      for (let run = 1; run <= 20; run++) assertValid(server.trace(run))
      const metrics = yield* metricsOf(server)
      assert.include(metrics, 'writ_http_requests_total{route="chat",code="200"} 20')
      assert.include(metrics, 'writ_runs_total{stop="completed"} 20')
      assert.include(metrics, "writ_request_seconds_count 20")
    })
  )

  it.live("are more than there is room for: one is told to come again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { trace, url } = yield* serving([hangs], { sessions: 1, serving: { queue: 0 } })
        const { say } = yield* wire(url)
        say(raw(JSON.stringify(hello)))
        yield* until(() => trace(1).includes("model_call_started"))
        const { body, headers, status } = yield* post(url, hello)
        assert.deepStrictEqual([status, answerOf(body).code], [503, "overloaded"])
        assert.isAbove(Number(headers.get("retry-after")), 0)
      })
    )
  )
})

describe("a server that is to end", () => {
  it.live("takes no new requests, says so where it is asked, and lets those inside finish", () =>
    Effect.gen(function* () {
      const slow: ScriptedTurn = { text: ["It ", "is ", "42."], millisPerToken: 100 }
      const { server, trace, url } = yield* serving([slow])
      const inside = yield* Effect.forkChild(post(url, hello), { startImmediately: true })
      yield* until(() => trace(1).includes("model_call_started"))
      const drained = yield* Effect.forkChild(server.drain(60_000), { startImmediately: true })
      const { body, headers, status } = yield* post(url, hello)
      assert.deepStrictEqual([status, answerOf(body).code], [503, "shutting_down"])
      assert.isAbove(Number(headers.get("retry-after")), 0)
      const health = (path: string) => Effect.promise(() => fetch(`${url}${path}`).then((response) => response.status))
      assert.deepStrictEqual([yield* health("/health/ready"), yield* health("/health/live")], [503, 200])
      assert.strictEqual(answerOf((yield* Fiber.join(inside)).body).content, "It is 42.")
      assert.strictEqual(yield* Fiber.join(drained), 0)
      assertValid(trace(1))
    })
  )

  it.live("cancels what is left after a while, running or waiting, and closes its record", () =>
    Effect.gen(function* () {
      const { server, trace, url } = yield* serving([hangs], { sessions: 1 })
      const running = yield* Effect.forkChild(post(url, hello), { startImmediately: true })
      yield* until(() => trace(1).includes("model_call_started"))
      const waiting = yield* Effect.forkChild(post(url, hello), { startImmediately: true })
      const seen = () => server.metrics.text({ inFlight: 0, waiting: 0, draining: false })
      yield* Effect.promise(async () => {
        while (
          !(await fetch(`${url}/metrics`).then((response) => response.text())).includes("writ_requests_waiting 1")
        );
      })
      assert.strictEqual(yield* server.drain(50), 2)
      const [first, second] = [yield* Fiber.join(running), yield* Fiber.join(waiting)]
      assert.deepStrictEqual([first.status, answerOf(first.body).code], [503, "cancelled"])
      assert.deepStrictEqual([second.status, answerOf(second.body).code], [503, "shutting_down"])
      assert.include(seen(), 'writ_runs_total{stop="cancelled"} 1')
      assertValid(trace(1))
    })
  )
})

describe("a server without an engine", () => {
  it.live("lives, is not ready until it has one again, and says why", () =>
    Effect.gen(function* () {
      let gone = false
      const lost = new EngineError({ reason: "lost", message: "It is gone." })
      const { url } = yield* serving([], {
        engine: (own) => ({ ...own, tokenize: (segments) => (gone ? Effect.fail(lost) : own.tokenize(segments)) })
      })
      const at = (path: string) =>
        Effect.promise(() => fetch(`${url}${path}`).then(async (it) => [it.status, await it.json()] as const))
      const turns = Effect.fnUntraced(function* (status: number) {
        for (;;) {
          const found = yield* at("/health/ready")
          if (found[0] === status) return found[1]
        }
      })
      assert.deepStrictEqual(yield* turns(200), { status: "ready", live: true, ready: true })
      gone = true
      assert.deepStrictEqual(yield* turns(503), { status: "no_engine", live: true, ready: false })
      assert.strictEqual((yield* at("/health"))[0], 503)
      assert.strictEqual((yield* at("/health/live"))[0], 200)
      gone = false
      yield* turns(200)
    })
  )
})

describe("metrics", () => {
  it.live("are lines that Prometheus reads, and hold nothing of what clients say", () =>
    Effect.gen(function* () {
      const server = yield* serving([call("add", { a: 1, b: 2 }), "It is 3."])
      yield* post(server.url, hello)
      yield* post(server.url, { ...hello, model: "secret-model" })
      yield* post(server.url, hello, { headers: { "content-type": "text/secret" } })
      yield* post(server.url, "{")
      yield* Effect.promise(() => fetch(`${server.url}/secret-path`))
      const text = yield* metricsOf(server)
      const kinds = new Map<string, string>()
      for (const line of text.split("\n").slice(0, -1)) {
        const kind = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/.exec(line)
        if (kind !== null) kinds.set(kind[1]!, kind[2]!)
        else if (!line.startsWith("# HELP ")) {
          const found =
            /^([a-z_]+?)(?:_bucket|_sum|_count)?(?:\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})? (\d+(?:\.\d+)?(?:e-?\d+)?)$/.exec(
              line
            )
          assert.isNotNull(found, line)
          assert.isTrue(kinds.has(found[1]!) || kinds.has(line.split(/[{ ]/)[0]!), line)
        }
      }
      assert.notInclude(text, "secret")
      assert.include(text, 'writ_refused_total{reason="invalid"} 3')
      assert.include(text, 'writ_calls_total{outcome="succeeded"} 1')
      assert.include(text, 'writ_turns_total{end="kept"} 2')
      assert.include(text, 'writ_http_requests_total{route="chat",code="404"} 1')
      assert.include(text, 'writ_http_requests_total{route="other",code="404"} 1')
    })
  )
})
