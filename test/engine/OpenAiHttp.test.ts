/** Servers that do not behave: what a turn comes to, how often it is asked for, and that connections are left. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { parseAddress } from "../../src/engine/OpenAiAddress.ts"
import { make, standardPatience } from "../../src/engine/OpenAiHttp.ts"
import * as Servers from "../kit/openAiServer.ts"
import { answered, chatting, request, spoken } from "../kit/openAiTurns.ts"

const { delta, inTurn, json, saying, sse, stream } = Servers
const well = sse(saying("Fine."))

const reset: Servers.Answering = (_asked, response) => response.socket?.destroy()
/** Says something, and then what the rest does. */
const midway =
  (rest: (response: Parameters<Servers.Answering>[1]) => void): Servers.Answering =>
  (_asked, response) => {
    response.writeHead(200, stream)
    response.write(`data: ${JSON.stringify(delta({ content: "Well, " }))}\n\n`, () => rest(response))
  }

describe("a turn is asked for again", () => {
  const passing: ReadonlyArray<readonly [name: string, answering: Servers.Answering]> = [
    ["a reset connection", reset],
    ["a limit that is reached", json({ error: { message: "slow down" } }, 429)],
    ["a model that is loading", json({ error: { message: "Loading model" } }, 503)],
    ["a server's own fault", json({ error: "oops" }, 500)],
    ["a conflict", json({}, 409)],
    ["a stream that ends before it began", sse([], false)],
    ["a failure reported in place of the first word", sse([{ error: { message: "out of slots" } }])]
  ]
  for (const [name, answering] of passing) {
    it.live(`after ${name}`, () =>
      Effect.gen(function* () {
        const { asked, end, text } = yield* answered(inTurn(answering, well))
        assert.deepStrictEqual([text, end?.reason, asked], ["Fine.", "eog", 2])
      })
    )
  }

  it.live("no more often than allowed", () =>
    Effect.gen(function* () {
      const { asked, error } = yield* answered(json({ error: { message: "slow down" } }, 429), { attempts: 3 })
      assert.deepStrictEqual([error?.reason, asked], ["failed", 3])
      assert.include(error?.message, "answers 429: slow down. Its limit is reached")
    })
  )

  it.live("never once something of it was delivered", () =>
    Effect.gen(function* () {
      const { asked, error, text } = yield* answered(
        inTurn(
          midway((response) => response.destroy()),
          well
        )
      )
      assert.deepStrictEqual([text, error?.reason, asked], ["Well, ", "restarted", 1])
      assert.include(error?.message, "broke off")
    })
  )

  it.live("not where the server asks for more patience than there is", () =>
    Effect.gen(function* () {
      const busy: Servers.Answering = (_asked, response) => response.writeHead(429, { "retry-after": "3600" }).end()
      const { asked, error } = yield* answered(inTurn(busy, well))
      assert.deepStrictEqual([error?.reason, asked], ["failed", 1])
    })
  )

  it.live("not where it would come to the same", () =>
    Effect.gen(function* () {
      for (const [status, reason] of [
        [400, "bad_request"],
        [404, "bad_request"],
        [401, "failed"],
        [501, "unsupported"]
      ] as const) {
        const { asked, error } = yield* answered(json({ error: { message: "no" } }, status))
        assert.deepStrictEqual([error?.reason, asked], [reason, 1], String(status))
      }
    })
  )

  it.effect("after pauses that grow, and never sooner than the server wants", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      const client = HttpClient.make((asked) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          times.push(now)
          const headers: Record<string, string> = times.length === 3 ? { "retry-after": "20" } : {}
          return HttpClientResponse.fromWeb(asked, new Response("{}", { status: 503, headers }))
        })
      )
      const address = Result.getOrThrow(parseAddress("http://127.0.0.1:1"))
      const { ask } = make(client, address, undefined, { ...standardPatience, attempts: 5 })
      const running = yield* Effect.forkChild(Effect.flip(ask("http://127.0.0.1:1/x")), { startImmediately: true })
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual((yield* Fiber.join(running)).status, 503)
      const pauses = times.slice(1).map((time, at) => time - times[at]!)
      assert.strictEqual(pauses.length, 4)
      for (const [at, [least, most]] of [
        [375, 625],
        [750, 1250],
        [20_000, 20_000],
        [3000, 5000]
      ].entries()) {
        assert.isAtLeast(pauses[at]!, least!)
        assert.isAtMost(pauses[at]!, most! + 1)
      }
    })
  )
})

describe("a stream of events", () => {
  it.live("is read whatever its bytes are cut into, with comments and other line ends", () =>
    Effect.gen(function* () {
      const text = `: hello\r\n\r\n${saying("Grüß dich 😀.")
        .map((event) => `data: ${JSON.stringify(event)}\r\n\r\n: ping\r\n\r\n`)
        .join("")}data: [DONE]\r\n\r\n`
      const bytes = Buffer.from(text)
      const drip: Servers.Answering = (_asked, response) => {
        response.writeHead(200, stream)
        response.socket?.setNoDelay(true)
        const next = (at: number): void => {
          if (at >= bytes.length) response.end()
          else response.write(bytes.subarray(at, at + 1), () => next(at + 1))
        }
        next(0)
      }
      const { end, text: said } = yield* answered(drip)
      assert.deepStrictEqual([said, end?.usage.outputTokens], ["Grüß dich 😀.", 7])
    })
  )

  it.live("may end without saying so, once the turn has", () =>
    Effect.gen(function* () {
      const { end, text } = yield* answered(sse(saying("Fine."), false))
      assert.deepStrictEqual([text, end?.reason], ["Fine.", "eog"])
      const broken = midway((response) => {
        response.write(`data: ${JSON.stringify(delta({}, "stop"))}\n\n`, () => response.destroy())
      })
      assert.strictEqual((yield* answered(broken)).text, "Well, ")
    })
  )

  it.live("that ends in the middle of a turn is no turn", () =>
    Effect.gen(function* () {
      const { end, error } = yield* answered(midway((response) => response.end("data: [DONE]\n\n")))
      assert.isUndefined(end)
      assert.strictEqual(error?.reason, "restarted")
      assert.include(error?.message, "before the turn was over")
    })
  )

  const strange: ReadonlyArray<readonly [name: string, answering: Servers.Answering, words: string]> = [
    [
      "a page of HTML",
      (_a, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"),
      "text/html"
    ],
    ["one document", json(delta({ content: "x" })), "application/json"],
    ["a failure in place of a stream", json({ error: { message: "model 'x' not found" } }), "model 'x' not found"],
    ["no type at all", (_a, response) => response.writeHead(200).end("data: {}\n\n"), "no type"],
    ["an event that is no JSON", midway((response) => response.end("data: {oops\n\n")), "no JSON object: {oops"],
    ["an event that is a list", midway((response) => response.end("data: []\n\n")), "no JSON object"],
    ["what is no text", midway((response) => response.end(Buffer.from([0x64, 0xff, 0xff, 0x0a]))), "not UTF-8"],
    [
      "a redirect",
      (_a, response) => response.writeHead(307, { location: "http://127.0.0.1:9/elsewhere" }).end(),
      "answers 307. It sends one on elsewhere"
    ],
    [
      "an error page",
      (_a, response) => response.writeHead(404, { "content-type": "text/html" }).end("<html><h1>nginx"),
      "answers 404: a page of HTML"
    ],
    ["a failure of its own", midway((response) => response.end('event: error\ndata: {"message":"CUDA"}\n\n')), "CUDA"]
  ]
  for (const [name, answering, words] of strange) {
    it.live(`is refused where there is ${name}, in words`, () =>
      Effect.gen(function* () {
        const { end, error } = yield* answered(answering, { attempts: 1 })
        assert.isUndefined(end)
        assert.include(error?.message, words)
      })
    )
  }

  it.live("is led nowhere else, over fetch neither", () =>
    Effect.gen(function* () {
      const other = yield* Servers.fake({ "/models": Servers.models("m") })
      const away: Servers.Answering = (_asked, response) =>
        response.writeHead(307, { location: `${other.url}/v1/models` }).end()
      const server = yield* Servers.fake({ "/models": away })
      const address = Result.getOrThrow(parseAddress(server.url))
      const client = yield* Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
      const { error } = yield* Effect.flip(
        make(client, address, undefined, standardPatience).ask(`${address.api}/models`)
      )
      assert.include(error.message, "answers 307. It sends one on elsewhere")
      assert.deepStrictEqual([server.asked.length, other.asked.length], [1, 0])
    })
  )

  it.live("shows no character of the server's that acts on a terminal", () =>
    Effect.gen(function* () {
      const { error } = yield* answered(json({ error: { message: "\u001b[2J\u202e red \u0007" } }, 400))
      assert.match(error?.message ?? "", /answers 400: \[2J red/)
    })
  )

  it.live("has events of bounded size, turns of bounded length, and answers of bounded size", () =>
    Effect.gen(function* () {
      const long = midway((response) => response.end(`data: ${"x".repeat(5 * 1024 * 1024)}\n\n`))
      assert.include((yield* answered(long)).error?.message, "too long")
      const endless = midway((response) => {
        const more = (): void => {
          if (response.destroyed) return
          response.write(`data: ${JSON.stringify(delta({ content: "x".repeat(10_000) }))}\n\n`, more)
        }
        more()
      })
      assert.include((yield* answered(endless)).error?.message, "does not stop where it was told to")
      const empty = midway((response) => {
        const many = `data: ${JSON.stringify(delta({}))}\n\n`.repeat(500)
        const more = (): void => void (response.destroyed || response.write(many, more))
        more()
      })
      assert.include((yield* answered(empty)).error?.message, "does not stop where it was told to")
      const address = Result.getOrThrow(parseAddress("http://127.0.0.1:1"))
      const client = HttpClient.make((asked) =>
        Effect.succeed(HttpClientResponse.fromWeb(asked, new Response(`"${"x".repeat(17 * 1024 * 1024)}"`)))
      )
      const { error } = yield* Effect.flip(
        make(client, address, undefined, standardPatience).ask("http://127.0.0.1:1/x")
      )
      assert.include(error.message, "more than")
    })
  )
})

describe("a prompt that is too long", () => {
  it.live("is told apart from other wrong requests, in each server's words", () =>
    Effect.gen(function* () {
      for (const error of [
        { code: 400, type: "exceed_context_size_error", message: "request (9000 tokens) exceeds" },
        { code: "context_length_exceeded", message: "too many tokens" },
        { message: "This model's maximum context length is 2048 tokens." }
      ]) {
        assert.strictEqual((yield* answered(json({ error }, 400))).error?.reason, "context_overflow")
      }
    })
  )
})

describe("a server that says nothing", () => {
  const silent: Servers.Answering = () => {}
  const ping = (response: Parameters<Servers.Answering>[1]): void => {
    if (!response.destroyed) response.write(": ping\n\n", () => setImmediate(() => ping(response)))
  }
  const pinging: Servers.Answering = (_asked, response) => {
    response.writeHead(200, stream)
    ping(response)
  }

  it.live("is given up before it begins, with or without signs of life", () =>
    Effect.gen(function* () {
      for (const answering of [silent, pinging]) {
        const { asked, error } = yield* answered(answering, { firstMillis: 40, attempts: 2 })
        assert.deepStrictEqual([error?.reason, asked], ["lost", 2])
      }
    })
  )

  it.live("or nothing more of a turn that is over, is not waited for", () =>
    Effect.gen(function* () {
      for (const rest of [silent, pinging]) {
        const over = midway((response) => {
          response.write(`data: ${JSON.stringify(delta({}, "stop"))}\n\n`)
          if (rest === pinging) ping(response)
        })
        const { end, text } = yield* answered(over, { restMillis: 40 })
        assert.deepStrictEqual([text, end?.reason], ["Well, ", "eog"])
      }
    })
  )

  it.live("is given up in the middle of a turn", () =>
    Effect.gen(function* () {
      const { error, text } = yield* answered(
        midway(() => {}),
        { idleMillis: 40 }
      )
      assert.deepStrictEqual([text, error?.reason], ["Well, ", "restarted"])
      assert.include(error?.message, "not been heard of")
    })
  )
})

describe("leaving a turn", () => {
  it.live("closes its connection, which the server sees, and the session goes on", () =>
    Effect.gen(function* () {
      const heard = yield* Deferred.make<void>()
      const { session, turn, turns } = yield* chatting(
        inTurn(
          midway(() => {}),
          well
        )
      )
      const before = yield* session.length
      const running = yield* Effect.forkChild(Stream.runForEach(turn, () => Deferred.succeed(heard, undefined)))
      yield* Deferred.await(heard)
      yield* Fiber.interrupt(running)
      yield* turns()[0]!.left
      assert.strictEqual(yield* session.length, before)
      assert.strictEqual(spoken(yield* Stream.runCollect(turn)), "Fine.")
    })
  )

  it.live("before anything came closes it too", () =>
    Effect.gen(function* () {
      const asked = Deferred.makeUnsafe<void>()
      const { turn, turns } = yield* chatting(() => Deferred.doneUnsafe(asked, Effect.void))
      const running = yield* Effect.forkChild(Stream.runDrain(turn))
      yield* Deferred.await(asked)
      const exit = yield* Fiber.interrupt(running).pipe(Effect.andThen(Fiber.await(running)))
      assert.isTrue(exit._tag === "Failure" && Cause.hasInterruptsOnly(exit.cause))
      yield* turns()[0]!.left
    })
  )

  it.live("after a failure of ours closes it as well", () =>
    Effect.gen(function* () {
      const { turns, turn } = yield* chatting(midway((response) => response.write("data: {oops\n\n")))
      yield* Effect.flip(Stream.runDrain(turn))
      yield* turns()[0]!.left
    })
  )
})

describe("a turn's request", () => {
  it.live("says what everybody knows, and asks for nothing that only some do", () =>
    Effect.gen(function* () {
      const { turn, turns } = yield* chatting(well)
      yield* Stream.runDrain(turn)
      const { messages, ...rest } = turns()[0]!.body
      assert.deepStrictEqual(messages, [
        { role: "system", content: "S" },
        { role: "user", content: "U" }
      ])
      assert.deepStrictEqual(rest, {
        model: "m",
        max_tokens: request.maxTokens,
        temperature: 0,
        top_p: 0.95,
        seed: 7,
        stream: true,
        stream_options: { include_usage: true }
      })
    })
  )
})
