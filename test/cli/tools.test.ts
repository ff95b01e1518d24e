import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Provisions } from "../../src/cli/Provisions.ts"
import { findingsOf } from "../../src/cli/ToolFindings.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { holds } from "../../src/tools/Terms.ts"
import { directory, invoke } from "../kit/cli.ts"

const outbox = join(import.meta.dirname, "../kit/outbox.ts")

const Do = Tool.make("do", {
  description: "Does it.",
  parameters: Schema.Struct({ what: Schema.String.annotate({ description: "What to do" }) }),
  success: Schema.String
})

/** Nothing is amiss with it. */
const sound: Contract.PlainTerms & Parameters<typeof Contract.declare<typeof Do>>[1] = {
  risk: "external",
  ledger: "external",
  retry: "safe",
  reversible: true,
  evidence: { source: "probe", describes: "the thing is there" },
  touches: ({ what }) => [{ verb: "write", resource: `thing:${what}` }],
  post: () => Effect.succeed(holds())
}

const findingsIn = (tool: Tool.Any) =>
  Effect.map(Registry.fromToolkit(Toolkit.make(tool as typeof Do), { do: () => Effect.succeed("done") }), ({ tools }) =>
    tools.flatMap((tool) => findingsOf(tool))
  )

const codesOf = (tool: Tool.Any) => Effect.map(findingsIn(tool), (findings) => findings.map(({ code }) => code))

describe("writ tools check", () => {
  it.effect("finds nothing amiss with the tools that come with Writ", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["tools", "check", "--json"])
      assert.deepStrictEqual([code, JSON.parse(out).findings], [0, []])
      assert.include(JSON.parse(out).tools, "write_artifact")
    })
  )

  it.effect("finds each thing that is amiss, by its name, and nothing with a sound contract", () =>
    Effect.gen(function* () {
      const { touches: _, ...untouched } = sound
      const cases: ReadonlyArray<readonly [Tool.Any, ReadonlyArray<string>]> = [
        [Contract.declare(Do, sound), []],
        [Do, ["says_nothing"]],
        [Do.annotate(Contract.Risk, "read"), ["touches_missing"]],
        [Contract.declare(Do, untouched), ["touches_missing"]],
        [Contract.declare(Do, { ...sound, evidence: { source: "self", describes: "its word" } }), ["self_report"]],
        [Contract.declare(Do, { ...sound, retry: "never" }), ["retry_never"]],
        [Contract.declare(Do, { ...sound, ledger: "none", retry: "never" }), []],
        [Contract.declare(Do, { ...sound, post: "result" }), ["no_postcondition"]]
      ]
      for (const [tool, expected] of cases) assert.deepStrictEqual(yield* codesOf(tool), expected)
    })
  )

  it.effect("finds descriptions that are missing, and keywords that no grammar carries, with their places", () =>
    Effect.gen(function* () {
      const bare = Tool.make("do", {
        parameters: Schema.Struct({
          what: Schema.String,
          count: Schema.Int.check(Schema.isMultipleOf(5)).annotate({ description: "How many" })
        }),
        success: Schema.String
      })
      const found = yield* findingsIn(Contract.declare(bare, { risk: "read", touches: () => [] }))
      assert.deepStrictEqual(
        found.map(({ code }) => code),
        ["no_description", "no_description", "not_in_grammar"]
      )
      assert.include(found[1]?.what, "the argument what")
      assert.include(found[2]?.what, "multipleOf at /properties/count")
      for (const { remedy } of found) assert.notStrictEqual(remedy, "")
    })
  )

  it.effect("looks at a module somebody names, ends with 3, and says what to do", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["tools", "check", "--toolkit", outbox, "--json"])
      assert.strictEqual(code, 3)
      const { findings } = JSON.parse(out)
      assert.deepStrictEqual([...new Set(findings.map(({ tool }: { tool: string }) => tool))], ["careless"])
    })
  )

  it.effect("refuses a module that is none, and one without a registry", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      writeFileSync(join(cwd, "empty.mjs"), "export const tools = []\n")
      writeFileSync(join(cwd, "broken.mjs"), "export const registry = (\n")
      const refused = Effect.fnUntraced(function* (name: string, why: string) {
        const { code, err } = yield* invoke(["tools", "list", "--toolkit", join(cwd, name)])
        assert.deepStrictEqual([code, err.includes(why)], [2, true], err)
      })
      yield* refused("none.mjs", "there is no such file")
      yield* refused("empty.mjs", "it exports no registry")
      yield* refused("broken.mjs", "it cannot be loaded")
    })
  )
})

describe("writ tools list", () => {
  it.effect("says of each tool what it owes", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["tools", "list", "--toolkit", outbox, "--json"])
      assert.strictEqual(code, 0)
      const [letter, , , careless] = JSON.parse(out).tools
      assert.deepStrictEqual(
        [letter.name, letter.risk, letter.ledger, letter.retry, letter.reversible, letter.scopes, letter.stated],
        ["post_letter", "external", "none", "never", false, ["mail"], true]
      )
      assert.deepStrictEqual([careless.risk, careless.stated], ["external", false])
    })
  )
})

describe("writ tools show", () => {
  const shown = (name: string) =>
    Effect.map(invoke(["tools", "show", name, "--toolkit", outbox, "--json"]), ({ code, out }) => {
      assert.strictEqual(code, 0)
      return JSON.parse(out)
    })

  it.effect("tells what is said from what is assumed, names the functions, and prints the schema", () =>
    Effect.gen(function* () {
      const letter = yield* shown("post_letter")
      assert.deepStrictEqual(letter.contract.functions, ["touches", "post", "cost", "hazard", "preview"])
      assert.deepStrictEqual(Object.keys(letter.parameters.properties), ["to", "text"])
      assert.notInclude(letter.assumed, "risk")
      assert.notInclude(letter.assumed, "ledger")
      assert.include(letter.assumed, "settle")
      const careless = yield* shown("careless")
      assert.includeMembers(careless.assumed, ["risk", "ledger", "retry", "reversible", "evidence"])
    })
  )

  it.effect("suggests the nearest tool", () =>
    Effect.gen(function* () {
      const { code, err } = yield* invoke(["tools", "show", "calculat"])
      assert.deepStrictEqual([code, err], [2, "writ: there is no tool calculat; did you mean calculate?"])
    })
  )

  it.effect("shows the tools of a program that embeds the command line", () =>
    Effect.gen(function* () {
      const tools = Registry.fromToolkit(Toolkit.make(Contract.declare(Do, sound)), {
        do: () => Effect.succeed("done")
      })
      const { code, out } = yield* invoke(["tools", "list", "--json"]).pipe(
        Effect.provideService(Provisions, { tools, services: Wiring.layer })
      )
      assert.deepStrictEqual([code, JSON.parse(out).tools.length], [0, 1])
    })
  )
})
