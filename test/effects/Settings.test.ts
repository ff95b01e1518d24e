import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Limits from "../../src/effects/Limits.ts"
import { fields, flagOf, names, variableOf } from "../../src/effects/SettingFields.ts"
import { limitsOf, load, type RawSettings, resolve } from "../../src/effects/Settings.ts"
import { directory } from "../kit/cli.ts"

const settle = (flags: RawSettings, environment: RawSettings = {}, file: RawSettings = {}) =>
  Result.getOrThrow(resolve({ flags, environment, file }))
const problems = (flags: RawSettings, environment: RawSettings = {}, file: RawSettings = {}) => {
  const read = resolve({ flags, environment, file })
  return Result.isFailure(read) ? read.failure.problems : []
}

const withEnvironment = (env: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

describe("settings", () => {
  it("come from flags before the environment before the file, and say so", () => {
    const { origins, settings } = settle({ seed: "1" }, { seed: "2", topK: "5" }, { seed: 3, topK: 6, codec: "hermes" })
    assert.deepStrictEqual([settings.seed, settings.topK, settings.codec, settings.topP], [1, 5, "hermes", 0.95])
    assert.deepStrictEqual(
      [origins.seed, origins.topK, origins.codec, origins.topP],
      ["flag", "environment", "file", "default"]
    )
  })

  it("without anybody's word are the limits of the library", () => {
    assert.deepStrictEqual(limitsOf(settle({}).settings), Limits.defaults)
  })

  it("know what none and 0 mean for every limit", () => {
    const limits = [
      "maxTurns",
      "maxToolCalls",
      "wallTime",
      "toolTimeout",
      "maxResultBytes",
      "maxRepairs",
      "loopThreshold"
    ] as const
    for (const name of limits) {
      assert.strictEqual(settle({ [name]: "none" }).settings[name], Infinity, name)
      assert.strictEqual(settle({ [name]: "0" }).settings[name], 0, name)
      assert.strictEqual(
        settle({}, {}, { [name]: 3 }).settings[name],
        name === "wallTime" || name === "toolTimeout" ? 3000 : 3
      )
    }
    assert.strictEqual(settle({ wallTime: "1.5" }).settings.wallTime, 1500)
  })

  it("read every boolean both ways, from every source", () => {
    assert.isTrue(settle({ traceContent: true }).settings.traceContent)
    assert.isFalse(settle({ traceContent: false }, { traceContent: "on" }).settings.traceContent)
    assert.isTrue(settle({}, { traceContent: "1" }).settings.traceContent)
    assert.isFalse(settle({}, { thinking: "off" }).settings.thinking)
  })

  it("take facts whose values have commas and equals signs", () => {
    assert.deepStrictEqual(settle({ fixture: ["a=1,2", "b=c=d"] }).settings.fixture, { a: "1,2", b: "c=d" })
    assert.deepStrictEqual(settle({}, { fixture: '{"a":"1,2"}' }).settings.fixture, { a: "1,2" })
    assert.deepStrictEqual(problems({ fixture: ["=x"] }), ["--fixture: expected KEY=VALUE"])
  })

  it("report everything that is wrong at once, each with its place", () => {
    const found = problems({ topP: "3" }, { seed: "0x10" }, { calls: "paralel" })
    assert.strictEqual(found.length, 3)
    for (const place of ["--top-p: ", "WRIT_SEED: ", 'writ.config.json, "calls": ']) {
      assert.isTrue(
        found.some((line) => line.startsWith(place)),
        place
      )
    }
  })

  it("never let a file that lies in a directory approve everything", () => {
    assert.deepStrictEqual(problems({}, {}, { approve: "all" }).length, 1)
    assert.strictEqual(settle({}, { approve: "all" }).settings.approve, "all")
    assert.strictEqual(settle({}, {}, { approve: "deny" }).settings.approve, "deny")
  })

  it("have one name in each source", () => {
    assert.deepStrictEqual(
      [flagOf("maxToolCalls"), variableOf("maxToolCalls")],
      ["max-tool-calls", "WRIT_MAX_TOOL_CALLS"]
    )
    assert.strictEqual(new Set(names.map(variableOf)).size, names.length)
    for (const name of names) assert.isNotEmpty(fields[name].description)
  })
})

describe("the settings file", () => {
  const loadFrom = (text: string, env: Record<string, string> = {}) =>
    Effect.gen(function* () {
      const path = join(yield* directory, "writ.config.json")
      writeFileSync(path, text)
      return yield* load({}, path)
    }).pipe(withEnvironment(env))

  it.effect("is read, and the environment weighs more", () =>
    Effect.gen(function* () {
      const { origins, settings } = yield* loadFrom('{"seed": 4, "maxTurns": "none"}', { WRIT_SEED: "5" })
      assert.deepStrictEqual([settings.seed, settings.maxTurns, origins.maxTurns], [5, Infinity, "file"])
    })
  )

  it.effect("does not have to be there", () =>
    Effect.gen(function* () {
      const { file } = yield* load({}, join(yield* directory, "writ.config.json"))
      assert.isUndefined(file)
    }).pipe(withEnvironment({}))
  )

  it.effect("is refused with the place of its fault, or with what was probably meant", () =>
    Effect.gen(function* () {
      const broken = yield* Effect.flip(loadFrom('{\n  "seed": 1,\n}'))
      assert.match(broken.message, /^writ\.config\.json, line 3: /)
      const unknown = yield* Effect.flip(loadFrom('{"maxTurnz": 1}'))
      assert.include(unknown.message, 'did you mean "maxTurns"?')
      const twice = yield* Effect.flip(loadFrom('{"seed": 1, "seed": 2}'))
      assert.match(twice.message, /line 1: /)
    })
  )
})
