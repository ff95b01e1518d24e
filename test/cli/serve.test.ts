/** `writ serve` as a process: with the model that ships, and on its way out. */
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import OpenAI from "openai"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { directory, invoke, newestTrace, type Process, runsIn, type Start, start, traceOf, until } from "../kit/cli.ts"
import { listening } from "../kit/mcpHttp.ts"

interface Served {
  readonly running: Process
  readonly url: string
  readonly model: string
}

/** Ends with the scope, whatever became of it. */
const served = Effect.fnUntraced(function* (args: ReadonlyArray<string>, options: Start) {
  const running = yield* Effect.acquireRelease(
    Effect.sync(() => start(["serve", "--port", "0", "--json", ...args], options)),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.kill("SIGKILL")
        return ended
      })
  )
  yield* until(running, () => running.said().endsWith("}\n"))
  if (running.child.exitCode !== null) throw new Error((yield* Effect.promise(() => running.ended)).err)
  const { model, url } = JSON.parse(running.said()) as { readonly url: string; readonly model: string }
  return { running, url, model } satisfies Served
})

const clientOf = ({ url }: Served, apiKey = "sk-none") => new OpenAI({ apiKey, baseURL: url, maxRetries: 0 })

const question = "What is 17.5% of 240?"
const asking = ({ model }: Served) => ({ model, messages: [{ role: "user" as const, content: question }] })

/** A script whose first turn takes its time. */
const slow = (cwd: string): string => {
  const path = join(cwd, "script.json")
  writeFileSync(path, JSON.stringify({ turns: [{ text: "It is 42.", prefillMillis: 600_000 }] }))
  return path
}

const assertValid = (trace: string) => {
  const { complete, ok, violations } = validateText(trace)
  assert.deepStrictEqual({ complete, ok, violations }, { complete: true, ok: true, violations: [] })
}

describe("writ serve", () => {
  it.live("answers the openai client with the model that ships, and each answer is found by its name", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = yield* directory
        const server = yield* served(["--trace-content"], { cwd })
        const client = clientOf(server)
        const { data, response } = yield* Effect.promise(() =>
          client.chat.completions.create(asking(server)).withResponse()
        )
        assert.strictEqual(data.choices[0]?.message.content, "17.5% of 240 is 42.")
        const runId = response.headers.get("x-writ-run-id") ?? ""
        const trace = traceOf(join(cwd, ".writ/runs", runId))
        assert.include(trace, question)
        const streamed = yield* Effect.promise(async () => {
          let text = ""
          const stream = await client.chat.completions.create({ ...asking(server), stream: true })
          for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ""
          return text
        })
        assert.strictEqual(streamed, "17.5% of 240 is 42.")
        // The session holds all of this but the question: the calls that led to the answer are gone from it.
        const again = yield* Effect.promise(() =>
          client.chat.completions.create({
            ...asking(server),
            messages: [...asking(server).messages, data.choices[0]!.message, ...asking(server).messages]
          })
        )
        assert.isAbove(again.usage?.prompt_tokens_details?.cached_tokens ?? 0, 400)
        server.running.child.kill("SIGTERM")
        const { code, err } = yield* Effect.promise(() => server.running.ended)
        assert.strictEqual(code, 0, err)
        assert.lengthOf(runsIn(cwd), 3)
        for (const run of runsIn(cwd)) assertValid(traceOf(run))
      })
    )
  )

  it.live("lets requests finish when it is asked to stop, and cancels them when their time is up", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = yield* directory
        const server = yield* served(["--script", slow(cwd), "--drain-seconds", "0"], { cwd })
        const answer = clientOf(server)
          .chat.completions.create(asking(server))
          .catch((error) => error)
        yield* until(server.running, () => newestTrace(cwd).some((line) => line.event_type === "model_call_started"))
        server.running.child.kill("SIGTERM")
        assert.strictEqual((yield* Effect.promise(() => answer)).code, "cancelled")
        const { code, err } = yield* Effect.promise(() => server.running.ended)
        assert.strictEqual(code, 4, err)
        assert.include(err, "1 request had to be cancelled")
        assert.strictEqual(newestTrace(cwd).at(-1)?.event_type, "run_cancelled")
      })
    )
  )

  it.live("leaves at once when it is asked twice", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = yield* directory
        const server = yield* served(["--script", slow(cwd)], { cwd })
        const answer = clientOf(server)
          .chat.completions.create(asking(server))
          .catch((error) => error)
        yield* until(server.running, () => newestTrace(cwd).some((line) => line.event_type === "model_call_started"))
        const ready = server.url.replace("/v1", "/health/ready")
        server.running.child.kill("SIGINT")
        yield* Effect.promise(async () => {
          while ((await fetch(ready)).status !== 503);
        })
        server.running.child.kill("SIGINT")
        const { code, signal } = yield* Effect.promise(() => server.running.ended)
        assert.deepStrictEqual([code, signal], [130, null])
        assert.strictEqual((yield* Effect.promise(() => answer)).constructor.name, "APIConnectionError")
      })
    )
  )

  it.live("asks who is there where others reach it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = yield* directory
        const token = "0123456789abcdef"
        const env = { WRIT_SERVE_TOKENS: `ann:${token}` }
        const server = yield* served(["--script", slow(cwd), "--host", "0.0.0.0"], { cwd, env })
        const url = server.url.replace("0.0.0.0", "127.0.0.1")
        const listed = (key: string) =>
          Effect.promise(() =>
            clientOf({ ...server, url }, key)
              .models.list()
              .then(
                ({ data }) => data.map(({ id }) => id),
                (error) => error.status
              )
          )
        assert.deepStrictEqual(yield* listed(token), [server.model])
        assert.strictEqual(yield* listed("0123456789abcdeF"), 401)
      })
    )
  )
})

describe("writ serve is refused", () => {
  const refusal = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
    Effect.map(invoke(["serve", ...args], env), ({ code, err }) => ({ code, err }))

  it.live("where others reach it and nobody is named", () =>
    Effect.gen(function* () {
      const { code, err } = yield* refusal(["--host", "0.0.0.0"])
      assert.strictEqual(code, 2)
      assert.include(err, "--token-file")
    })
  )

  it.live("for tokens that others may read, that are none, or that are said twice", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const file = join(yield* directory, "tokens")
        const using = ["--token-file", file]
        assert.include((yield* refusal(using)).err, "there is no such file")
        writeFileSync(file, "ann:0123456789abcdef\n", { mode: 0o644 })
        chmodSync(file, 0o644)
        assert.include((yield* refusal(using)).err, "chmod 600")
        chmodSync(file, 0o600)
        assert.include((yield* refusal(using, { WRIT_SERVE_TOKENS: "bob:0123456789abcdef" })).err, "not both")
        writeFileSync(file, "ann:short\n")
        const { code, err } = yield* refusal(using)
        assert.strictEqual(code, 2)
        assert.include(err, "line 1")
        assert.notInclude(err, "short\n")
      })
    )
  )

  it.live.skipIf(process.platform !== "linux")("for tokens in a file that cannot be read", () =>
    Effect.gen(function* () {
      const { code, err } = yield* refusal(["--token-file", "/proc/self/mem"])
      assert.strictEqual(code, 2)
      assert.include(err, "--token-file /proc/self/mem: it cannot be read: EIO")
    })
  )

  it.live("for numbers that make no sense", () =>
    Effect.gen(function* () {
      for (const args of [
        ["--port", "70000"],
        ["--sessions", "0"],
        ["--queue", "-1"],
        ["--drain-seconds", "-1"]
      ]) {
        const { code, err } = yield* refusal(args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.include(err, args[0]!)
      }
    })
  )

  it.live("for a context policy: the model is shown the request, the whole of it", () =>
    Effect.gen(function* () {
      const { code, err } = yield* refusal(["--context-policy", "compact"])
      assert.strictEqual(code, 2)
      assert.include(err, "--context-policy: ")
    })
  )

  it.live("on an address that this machine does not have", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = yield* directory
        const env = { WRIT_SERVE_TOKENS: "ann:0123456789abcdef" }
        const running = start(["serve", "--host", "192.0.2.1", "--port", "0", "--script", slow(cwd)], { cwd, env })
        const { code, err } = yield* Effect.promise(() => running.ended)
        assert.strictEqual(code, 1)
        assert.include(err, "cannot listen on 192.0.2.1, port 0: this machine has no such address")
      })
    )
  )

  it.live("where another program listens already", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = yield* directory
        const taken = new URL(yield* listening(() => {})).port
        const running = start(["serve", "--port", taken, "--script", slow(cwd)], { cwd })
        const { code, err } = yield* Effect.promise(() => running.ended)
        assert.strictEqual(code, 1)
        assert.include(err, `port ${taken}: another program listens there`)
      })
    )
  )
})
