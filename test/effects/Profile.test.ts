import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Profile from "../../src/effects/Profile.ts"

const { cautious, exploratory, gatesOf, strict, workspace } = Profile

const ranks = {
  reversibility: ["reversible", "irreversible"],
  sideEffects: ["local", "external"],
  retry: ["harmless", "ambiguous", "dangerous"],
  evidence: ["self", "observable", "unobservable"]
} as const

/** Every combination of the values of a record of lists. */
const every = <A extends Record<string, ReadonlyArray<unknown>>>(lists: A) =>
  Object.entries(lists).reduce<ReadonlyArray<Record<string, unknown>>>(
    (done, [key, list]) => done.flatMap((one) => list.map((value) => ({ ...one, [key]: value }))),
    [{}]
  ) as ReadonlyArray<{ -readonly [K in keyof A]: A[K][number] }>

const allProfiles: ReadonlyArray<Profile.TaskProfile> = every(ranks).map((one) => ({ name: "x", ...one }))

const allTools: ReadonlyArray<Profile.Gated> = every({
  risk: ["read", "local-write", "external"],
  reversible: [true, false],
  source: ["self", "probe", "sensor", "person"],
  ledger: ["atomic", "external", "observe", "none"],
  retry: ["safe", "never"]
} as const).map(({ source, ...tool }) => ({ ...tool, evidence: { source } }))

const tool = (change: Partial<Profile.Gated> = {}): Profile.Gated => ({
  risk: "external",
  reversible: false,
  evidence: { source: "probe" },
  ledger: "external",
  retry: "safe",
  ...change
})

/** How strict gates are, one number per gate. */
const strictness = (gates: Profile.Gates): ReadonlyArray<number> => [
  Number(gates.approve),
  ["auto", "inquiry", "never"].indexOf(gates.retry),
  ["result", "post", "person"].indexOf(gates.evidence),
  Number(!gates.selfSettles),
  gates.riskWeight
]

const assertNotLooser = (strict: Profile.TaskProfile, loose: Profile.TaskProfile, one: Profile.Gated) => {
  const [above, below] = [strictness(gatesOf(strict, one)), strictness(gatesOf(loose, one))]
  for (const [index, rank] of above.entries()) {
    if (rank < below[index]!) assert.fail(JSON.stringify({ gate: index, strict, loose, one }))
  }
}

const parsed = (text: string) => Result.getOrThrow(Profile.parse(text))
const refused = (text: string) => Result.getOrThrow(Result.flip(Profile.parse(text)))

describe("gatesOf", () => {
  it("gates one tool differently in two tasks", () => {
    const invoice = tool({ reversible: true })
    assert.deepStrictEqual(gatesOf(exploratory, invoice), {
      approve: false,
      retry: "auto",
      evidence: "result",
      selfSettles: true,
      riskWeight: 1
    })
    assert.deepStrictEqual(gatesOf(strict, invoice), {
      approve: true,
      retry: "never",
      evidence: "person",
      selfSettles: false,
      riskWeight: 2
    })
  })

  it("by default runs reads and local writes and asks about everything external", () => {
    for (const one of allTools) assert.strictEqual(gatesOf(cautious, one).approve, one.risk === "external")
  })

  it("asks about an external call in every task except a reversible local one, and there if it cannot be undone", () => {
    for (const profile of allProfiles) {
      const free = profile.reversibility === "reversible" && profile.sideEffects === "local"
      assert.strictEqual(gatesOf(profile, tool({ reversible: true })).approve, !free)
      assert.isTrue(gatesOf(profile, tool({ reversible: false })).approve)
    }
  })

  it("asks about a local write only if nothing undoes it and only a person can see it", () => {
    for (const profile of allProfiles) {
      const hard = profile.reversibility === "irreversible" && profile.evidence === "unobservable"
      assert.strictEqual(gatesOf(profile, tool({ risk: "local-write", reversible: false })).approve, hard)
      assert.isFalse(gatesOf(profile, tool({ risk: "local-write", reversible: true })).approve)
      assert.isFalse(gatesOf(profile, tool({ risk: "read" })).approve)
    }
  })

  it("repeats by the table: retry property against risk, ledger mode and the tool's own rule", () => {
    const row = (change: Partial<Profile.Gated>) =>
      ranks.retry.map((retry) => gatesOf({ ...cautious, retry }, tool(change)).retry)
    assert.deepStrictEqual(row({ ledger: "atomic" }), ["auto", "inquiry", "never"])
    assert.deepStrictEqual(row({ ledger: "external" }), ["auto", "inquiry", "never"])
    assert.deepStrictEqual(row({ ledger: "observe" }), ["inquiry", "inquiry", "never"])
    assert.deepStrictEqual(row({ ledger: "none" }), ["never", "never", "never"])
    assert.deepStrictEqual(row({ ledger: "atomic", retry: "never" }), ["never", "never", "never"])
    assert.deepStrictEqual(row({ risk: "read", ledger: "none", retry: "never" }), ["auto", "never", "never"])
    assert.deepStrictEqual(row({ risk: "read", ledger: "external" }), ["auto", "inquiry", "never"])
  })

  it("takes evidence by the table: evidence property against risk and the tool's own source", () => {
    const row = (change: Partial<Profile.Gated>, reversibility: Profile.TaskProfile["reversibility"] = "reversible") =>
      ranks.evidence.map((evidence) => gatesOf({ ...cautious, reversibility, evidence }, tool(change)).evidence)
    for (const source of ["self", "probe", "sensor"] as const) {
      assert.deepStrictEqual(row({ evidence: { source } }), ["result", "post", "person"])
      assert.deepStrictEqual(row({ evidence: { source } }, "irreversible"), ["post", "post", "person"])
    }
    assert.deepStrictEqual(row({ evidence: { source: "person" } }), ["person", "person", "person"])
    assert.deepStrictEqual(row({ risk: "read" }, "irreversible"), ["result", "post", "post"])
    assert.deepStrictEqual(row({ reversible: true }, "irreversible"), ["result", "post", "person"])
  })

  it("does not let an irreversible tool vouch for itself in an irreversible task", () => {
    const self = { source: "self" } as const
    assert.isFalse(gatesOf(cautious, tool({ evidence: self })).selfSettles)
    assert.isTrue(gatesOf(cautious, tool({ evidence: self, reversible: true })).selfSettles)
    assert.isTrue(gatesOf(workspace, tool({ evidence: self })).selfSettles)
    assert.isTrue(gatesOf(cautious, tool({ evidence: self, risk: "read" })).selfSettles)
  })

  it("weighs risk twice where effects reach outside", () => {
    for (const profile of allProfiles) {
      assert.strictEqual(gatesOf(profile, tool()).riskWeight, profile.sideEffects === "external" ? 2 : 1)
    }
  })

  it("never opens a gate when one property is raised, in all 36 tasks and for all tools", () => {
    assert.strictEqual(allProfiles.length, 36)
    for (const loose of allProfiles) {
      for (const property of Object.keys(ranks) as ReadonlyArray<keyof typeof ranks>) {
        const list: ReadonlyArray<string> = ranks[property]
        const raised = list[list.indexOf(loose[property]) + 1]
        if (raised === undefined) continue
        const higher = { ...loose, [property]: raised } as Profile.TaskProfile
        for (const one of allTools) assertNotLooser(higher, loose, one)
      }
    }
  })
})

describe("the named profiles", () => {
  it("have distinct names and a summary each, the default first", () => {
    const names = Profile.profiles.map(({ profile }) => profile.name)
    assert.deepStrictEqual(names, ["cautious", "exploratory", "workspace", "strict"])
    for (const { summary } of Profile.profiles) assert.isAtLeast(summary.length, 20)
  })

  it("make the default the conservative end of what runs without a person: only strict is stricter", () => {
    for (const one of allTools) {
      for (const { profile } of Profile.profiles) {
        if (profile !== strict) assertNotLooser(cautious, profile, one)
      }
      assertNotLooser(strict, cautious, one)
    }
  })
})

describe("parse", () => {
  it("reads every name as it is", () => {
    for (const { profile } of Profile.profiles) assert.deepStrictEqual(parsed(profile.name), profile)
  })

  it("puts changes on top of a name, or of the default, and says so in the name", () => {
    assert.deepStrictEqual(parsed("strict, retry=ambiguous"), {
      ...strict,
      name: "strict,retry=ambiguous",
      retry: "ambiguous"
    })
    assert.deepStrictEqual(parsed("side-effects=local,evidence=self"), {
      ...cautious,
      name: "cautious,sideEffects=local,evidence=self",
      sideEffects: "local",
      evidence: "self"
    })
    assert.deepStrictEqual(parsed(parsed("side-effects=local").name), parsed("sideEffects=local"))
    assert.deepStrictEqual(parsed("cautious,retry=dangerous"), parsed("retry=dangerous"))
  })

  it("suggests the nearest profile, property and value", () => {
    assert.strictEqual(refused("strikt"), 'there is no profile "strikt": did you mean strict?')
    assert.strictEqual(refused("strict,rety=harmless"), 'there is no property "rety": did you mean retry?')
    assert.strictEqual(refused("retry=harmles"), 'there is no value of retry "harmles": did you mean harmless?')
    assert.strictEqual(
      refused("something else"),
      'there is no profile "something else": one of cautious, exploratory, workspace, strict'
    )
  })

  it("refuses what is not of the form, and what is said twice", () => {
    assert.strictEqual(refused("strict,retry"), '"retry" is not of the form key=value')
    assert.strictEqual(refused("retry=a=b"), '"retry=a=b" is not of the form key=value')
    assert.strictEqual(refused("retry=harmless,retry=dangerous"), "retry is said twice")
    assert.match(refused(""), /^there is no profile ""/)
    assert.match(refused("constructor"), /^there is no profile/)
    assert.match(refused("toString=x"), /^there is no property/)
  })
})
