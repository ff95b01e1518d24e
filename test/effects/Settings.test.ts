import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Limits from "../../src/effects/Limits.ts"
import { fields, flagOf, names, variableOf } from "../../src/effects/SettingFields.ts"
import {
  authorityOf,
  gatesOf,
  gatesProblem,
  grantText,
  limitsOf,
  load,
  type RawSettings,
  resolve
} from "../../src/effects/Settings.ts"
import type { Verb } from "../../src/tools/Terms.ts"
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

  it("take redaction rules as flags, as JSON or one rule in a variable, and as an object of the file", () => {
    const rules = [
      { name: "a", pattern: "x=y" },
      { name: "b", pattern: "[0-9]" }
    ]
    assert.deepStrictEqual(settle({ redact: ["a=x=y", "b=[0-9]"] }).settings.redact, rules)
    assert.deepStrictEqual(settle({}, { redact: '{"a":"x=y","b":"[0-9]"}' }).settings.redact, rules)
    assert.deepStrictEqual(settle({}, { redact: '["a=x=y","b=[0-9]"]' }).settings.redact, rules)
    assert.deepStrictEqual(settle({}, { redact: "a=x=y" }).settings.redact, rules.slice(0, 1))
    assert.deepStrictEqual(settle({}, {}, { redact: { a: "x=y", b: "[0-9]" } }).settings.redact, rules)
    assert.deepStrictEqual(problems({}, {}, { redact: { a: 1 } }), ['writ.config.json, "redact": "a" must be a text'])
    assert.match(problems({ redact: ["=x"] })[0] ?? "", /^--redact: expected NAME=PATTERN/)
  })

  it.effect("refuse a redaction rule that cannot be used when they are loaded, by name and place", () =>
    Effect.gen(function* () {
      const nowhere = join(yield* directory, "writ.config.json")
      const { message } = yield* Effect.flip(
        load({}, nowhere).pipe(withEnvironment({ WRIT_REDACT: '{"ahead":"a(?=b)"}' }))
      )
      assert.match(message, /^WRIT_REDACT: ahead: look-ahead/)
    })
  )

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

describe("settings of what decides about calls", () => {
  const settingsOf = (flags: RawSettings) => settle(flags).settings

  it.effect("permit everything unless something is said of it, and each kind of it for itself", () =>
    Effect.gen(function* () {
      assert.isUndefined(authorityOf(settingsOf({})))
      assert.isUndefined(gatesOf(settingsOf({})).authority)
      const allowed = Effect.fnUntraced(function* (flags: RawSettings, scope: string, verb: Verb, resource: string) {
        const need = { tool: "t", scopes: [scope], touches: [{ verb, resource }] }
        return (yield* authorityOf(settingsOf(flags))!.check(need)).length === 0
      })
      const grant = { grant: ["read:workspace:**", "write:workspace:notes/*"] }
      assert.isTrue(yield* allowed(grant, "mail", "write", "workspace:notes/a.md"))
      assert.isFalse(yield* allowed(grant, "mail", "write", "workspace:other.md"))
      assert.isTrue(yield* allowed({ deny: ["write:workspace:**"] }, "mail", "read", "workspace:a"))
      const both = { ...grant, deny: ["*:workspace:notes/**"] }
      assert.isFalse(yield* allowed(both, "mail", "write", "workspace:notes/a.md"))
      assert.isTrue(yield* allowed({ scope: ["mail"] }, "mail", "write", "workspace:a"))
      assert.isFalse(yield* allowed({ scope: ["mail"] }, "billing", "read", "workspace:a"))
    })
  )

  it("name what is permitted without saying it, the same for the same in any order", () => {
    const nameOf = (flags: RawSettings) => authorityOf(settingsOf(flags))?.name ?? ""
    const one = nameOf({ grant: ["read:workspace:**", "write:artifact:secret.md"] })
    assert.strictEqual(one, nameOf({ grant: ["write:artifact:secret.md", "read:workspace:**"] }))
    assert.notStrictEqual(one, nameOf({ deny: ["read:workspace:**", "write:artifact:secret.md"] }))
    assert.match(one, /^grants-[0-9a-f]{12}$/)
  })

  it("read times in the units people use, and plain numbers as seconds", () => {
    const millis = (text: string) => settingsOf({ approvalExpiry: text }).approvalExpiry
    assert.deepStrictEqual(
      ["500ms", "90s", "30m", "2h", "1d", "5", "1.5"].map(millis),
      [500, 90_000, 1_800_000, 7_200_000, 86_400_000, 5000, 1500]
    )
    for (const wrong of ["", "0", "-1s", "31d", "5 minutes", "1e9"]) {
      assert.include(problems({ approvalExpiry: wrong })[0], "--approval-expiry: expected a time", wrong)
    }
  })

  it("take several grants from one variable as a JSON list, and one as it is", () => {
    const grants = (raw: string) => settle({}, { grant: raw }).settings.grant.map(grantText)
    assert.deepStrictEqual(grants("read:workspace:a,b"), ["read:workspace:a,b"])
    assert.deepStrictEqual(grants('["read:workspace:a","send:mail:*"]'), ["read:workspace:a", "send:mail:*"])
    assert.include(problems({}, { grant: "[" })[0], "WRIT_GRANT: expected VERB:RESOURCE, or a list of them")
    assert.include(problems({}, {}, { grant: [] })[0], '"grant": expected')
  })

  it("do not come from a file where they ask or check less than the default does", () => {
    const file = (profile: string) => problems({}, {}, { profile }).length === 0
    assert.isTrue(file("cautious"))
    assert.isTrue(file("strict"))
    assert.isTrue(file("cautious,retry=dangerous"))
    for (const looser of ["exploratory", "workspace", "strict,retry=harmless", "evidence=self"])
      assert.isFalse(file(looser))
  })

  it("are checked together", () => {
    assert.isUndefined(gatesProblem(settingsOf({ retryAttempts: "5", retryDelay: "2s", candidates: "3" })))
    assert.include(gatesProblem(settingsOf({ retryFactor: "1" })), "factor must be more than 1")
    assert.include(gatesProblem(settingsOf({ retryAttempts: "100" })), "the last wait would be longer")
    const { candidates, dryRun, retry } = gatesOf(settingsOf({ candidates: "3", dryRun: true, retryDelay: "250ms" }))
    assert.deepStrictEqual([candidates, dryRun, retry], [3, true, { attempts: 4, delayMillis: 250, factor: 2 }])
  })
})

describe("a settings file that lies in somebody else's directory", () => {
  const from = (file: RawSettings) => resolve({ flags: {}, environment: {}, file })

  it("may not point anything out of that directory, forget effects, or stretch an approval", () => {
    for (const [name, said] of [
      ["workspace", "/"],
      ["workspace", "../elsewhere"],
      ["runDir", "/tmp/run"],
      ["ledger", "memory"],
      ["ledger", "postgres://somewhere/ledger"],
      ["ledger", "../ledger.sqlite"],
      ["approvalExpiry", "1d"]
    ] as const) {
      const found = from({ [name]: said })
      assert.isTrue(Result.isFailure(found), `${name}: ${said}`)
      assert.include(Result.isFailure(found) ? found.failure.message : "", "has to be said on the command line")
    }
  })

  it("may say what stays inside it, and what is stricter", () => {
    const said = { workspace: "data", runDir: "runs/a", ledger: "ledger.sqlite", approvalExpiry: "5m" }
    assert.isTrue(Result.isSuccess(from(said)))
  })
})
