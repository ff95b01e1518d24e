/** `--engine-url` on the command line: what is refused before anybody is asked, whole runs, and where the key is not. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type RawSettings, resolve } from "../../src/effects/Settings.ts"
import { directory, invoke, writ } from "../kit/cli.ts"
import * as Servers from "../kit/openAiServer.ts"
import { call, lines } from "../kit/script.ts"

const key = "canary-server-key-52"

const refused = Effect.fnUntraced(function* (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) {
  const { code, err, out } = yield* invoke(["run", "t", "--tools", "none", ...args], env)
  assert.deepStrictEqual([code, out], [2, ""], args.join(" "))
  assert.notInclude(err, key)
  return err
})

/** Every byte below a directory. */
const everythingIn = (path: string): string =>
  readdirSync(path, { recursive: true, encoding: "utf8" })
    .map((name) => join(path, name))
    .filter((name) => statSync(name).isFile())
    .map((name) => readFileSync(name, "latin1"))
    .join("\n")

/** Flags of a run that leaves everything in one directory. */
const at = (cwd: string, ...more: ReadonlyArray<string>): ReadonlyArray<string> => [
  "--run-dir",
  join(cwd, "run"),
  "--ledger",
  join(cwd, "ledger.sqlite"),
  ...more
]

const provenanceIn = (run: string) =>
  lines(readFileSync(join(run, "trace.jsonl"), "utf8")).find(({ event_type }) => event_type === "provenance")!.data

describe("a server on the command line", () => {
  it.effect("is refused where it cannot be one, and its flags where there is none", () =>
    Effect.gen(function* () {
      const far = ["--engine-url", "http://host.test"]
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp, Readonly<Record<string, string>>?]> = [
        [["--engine-url", "host.test:80"], /--engine-url: expected the address of a server/],
        [["--engine-url", `https://me:${key}@host.test`], /--engine-url: the address holds a name or a password/],
        [["--engine-api", "chat"], /--engine-api: it goes with --engine-url/],
        [["--api-key-env", "KEY"], /--api-key-env: it goes with --engine-url/],
        [[...far, "--script", "x.json"], /give --engine-url or --script, not both/],
        [[...far, "--api-key-env", "NONE"], /--api-key-env NONE: there is no such variable/],
        [[...far, "--codec", "nonsense"], /there is no codec "nonsense"/],
        [far, /the key in WRIT_API_KEY would be sent unencrypted; use https/, { WRIT_API_KEY: key }],
        [far, /WRIT_API_KEY: it holds no key/, { WRIT_API_KEY: `${key} x` }]
      ]
      for (const [args, expected, env] of cases) assert.match(yield* refused(args, env), expected)
    })
  )

  it.live("is refused for conversation files, and said by the doctor", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = join(cwd, "c.yaml")
      writeFileSync(file, "conversation:\n  - user: Hi\n  - assistant:\n")
      const { code, err } = yield* invoke(["run", file, "--engine-url", "http://127.0.0.1:9"])
      assert.deepStrictEqual([code, /--engine-url: conversation files name their models/.test(err)], [2, true], err)
      const { out } = yield* invoke(["doctor"], { WRIT_ENGINE_URL: "http://127.0.0.1:9" })
      assert.include(out, "on the server http://127.0.0.1:9; a run asks it")
    })
  )

  it.live("is talked to as a settings file or a variable says, and neither is in the way of a run without one", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const script = join(cwd, "script.json")
      writeFileSync(script, JSON.stringify({ turns: ["It is 5."] }))
      writeFileSync(join(cwd, "writ.config.json"), JSON.stringify({ engineApi: "chat" }))
      const args = ["run", "2+3?", ...at(cwd, "--script", script, "--tools", "none", "--quiet")]
      const ran = yield* writ(args, { cwd, env: { WRIT_API_KEY_ENV: "KEY", WRIT_ENGINE_API: "completions" } })
      assert.deepStrictEqual([ran.code, ran.out], [0, "It is 5.\n"], ran.err)
    })
  )

  it("is named by no settings file, which somebody else may have written", () => {
    const inFile = (file: RawSettings) => {
      const read = resolve({ flags: {}, environment: {}, file })
      return Result.isFailure(read) ? read.failure.problems.join() : ""
    }
    const reading: RawSettings = { engineUrl: "https://host.test", apiKeyEnv: "HOME", allowPlainHttp: true }
    for (const name of Object.keys(reading) as ReadonlyArray<keyof typeof reading>) {
      assert.match(inFile({ [name]: reading[name] }), /has to be said on the command line/, name)
    }
    assert.strictEqual(inFile({ engineApi: "chat", allowPlainHttp: false }), "")
  })

  it.live("runs a task with tools, with messages, and leaves its key nowhere", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const server = yield* Servers.plain([
        [
          ...Servers.calling(0, "c", "calculate", '{"expression":"2+3"}'),
          Servers.delta({}, "tool_calls"),
          Servers.usage
        ],
        Servers.saying("It is 5.")
      ])
      const args = at(cwd, "--tools", "calculate", "--engine-url", server.url, "--trace-content", "--json")
      const { code, err, out } = yield* invoke(["run", "2+3?", ...args], { WRIT_API_KEY: key })
      assert.deepStrictEqual([code, JSON.parse(out).text], [0, "It is 5."], err)
      const { codec, model } = provenanceIn(join(cwd, "run")) as { codec: string; model: { engine: string } }
      assert.deepStrictEqual([codec, model.engine], ["openai-chat", "openai"])
      for (const { headers } of server.asked) assert.strictEqual(headers.authorization, `Bearer ${key}`)
      assert.notInclude(everythingIn(cwd) + out + err, key)
    })
  )

  it.live("runs the same task with prompts of ours", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const server = yield* Servers.llamaCpp([call("calculate", { expression: "2+3" }), "It is 5."])
      const args = at(cwd, "--tools", "calculate", "--engine-url", `${server.url}/v1`, "--quiet")
      const { code, err, out } = yield* invoke(["run", "2+3?", ...args])
      assert.deepStrictEqual([code, out], [0, "It is 5."], err)
      assert.strictEqual(provenanceIn(join(cwd, "run"))["codec"], "qwen2.5")
    })
  )

  it.live("holds what it holds: that a larger context is cut to it is said in one line with both numbers", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const server = yield* Servers.llamaCpp(["It is 5."], { context: 2048 })
      const args = at(cwd, "--tools", "none", "--engine-url", server.url, "--context", "100000", "--quiet")
      const { code, err, out } = yield* invoke(["run", "2+3?", ...args])
      assert.deepStrictEqual([code, out], [0, "It is 5."], err)
      assert.match(err, /^writ: --context 100000 is cut to 2048: \S.* holds no more there$/)
    })
  )

  it.live("leaves records that can be believed and played again without it, whichever way it was talked to", () =>
    Effect.gen(function* () {
      const chat = Servers.plain([
        [
          ...Servers.calling(0, "c", "calculate", '{"expression":"2+3"}'),
          Servers.delta({}, "tool_calls"),
          Servers.usage
        ],
        Servers.saying("It is 5.")
      ])
      for (const serve of [chat, Servers.llamaCpp([call("calculate", { expression: "2+3" }), "It is 5."])]) {
        const cwd = yield* directory
        const { url } = yield* serve
        const ran = yield* invoke([
          "run",
          "2+3?",
          ...at(cwd, "--tools", "calculate", "--engine-url", url, "--trace-content", "--quiet")
        ])
        assert.strictEqual(ran.code, 0, ran.err)
        const trace = join(cwd, "run", "trace.jsonl")
        for (const command of ["validate", "replay"]) {
          const { code, err, out } = yield* invoke(["trace", command, trace])
          assert.strictEqual(code, 0, `${command}: ${out}${err}`)
        }
      }
    })
  )

  it.live("that is not there, or does not want to, ends the command in words", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const closed = yield* Effect.scoped(Servers.fake({}))
      const gone = yield* invoke(["run", "t", ...at(cwd, "--engine-url", closed.url, "--tools", "none")])
      assert.strictEqual(gone.code, 1)
      assert.match(gone.err, /There is no connection to http:\/\/127\.0\.0\.1:\d+/)
      const locked = yield* Servers.fake({ "/models": Servers.json({ error: { message: `bad key ${key}` } }, 401) })
      const shut = yield* invoke(["run", "t", ...at(cwd, "--engine-url", locked.url)], { WRIT_API_KEY: key })
      assert.strictEqual(shut.code, 1)
      assert.match(shut.err, /answers 401: bad key \[key\].*WRIT_API_KEY/)
      const chat = yield* Servers.plain([])
      const other = yield* invoke(["run", "t", ...at(cwd, "--engine-url", chat.url, "--codec", "qwen3")])
      assert.strictEqual(other.code, 2)
      assert.match(other.err, /--codec qwen3: this server is told messages .*--engine-api completions/)
      const unknown = yield* Servers.llamaCpp([], { template: "no template anybody knows" })
      for (const [{ url }, code] of [
        [chat, 1],
        [unknown, 2]
      ] as const) {
        const forced = yield* invoke(["run", "t", ...at(cwd, "--engine-url", url, "--engine-api", "completions")])
        assert.strictEqual(forced.code, code)
        assert.match(forced.err, /--codec ID.*--engine-api chat/)
      }
    })
  )

  it.live("goes on with a run on the server that is named again, and on no other by itself", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const server = yield* Servers.plain([
        [
          ...Servers.calling(0, "c", "calculate", '{"expression":"2+3"}'),
          Servers.delta({}, "tool_calls"),
          Servers.usage
        ],
        Servers.saying("It is 5.")
      ])
      const flags = at(
        cwd,
        "--tools",
        "calculate",
        "--engine-url",
        server.url,
        "--trace-content",
        "--max-turns",
        "1",
        "--json"
      )
      const first = yield* invoke(["run", "2+3?", ...flags])
      assert.include(JSON.parse(first.out).next, `--engine-url ${server.url}`)
      const run = ["run", "--resume", join(cwd, "run"), "--ledger", join(cwd, "ledger.sqlite"), "--max-turns", "3"]
      const alone = yield* invoke(run)
      assert.strictEqual(alone.code, 2)
      assert.include(alone.err, `the run was made with some-model at ${server.url}: name the server with --engine-url`)
      const { code, err, out } = yield* invoke([...run, "--engine-url", server.url, "--quiet"])
      assert.deepStrictEqual([code, out], [0, "It is 5."], err)
      const { messages } = server.asked.at(-1)!.body
      assert.deepStrictEqual(messages.map(({ role }: { readonly role: string }) => role).slice(-3), [
        "user",
        "assistant",
        "tool"
      ])
    })
  )
})
