import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import * as Authority from "../../src/effects/Authority.ts"
import type { Touch } from "../../src/tools/Terms.ts"

const touching = (...touches: ReadonlyArray<string>): Authority.Need => ({
  tool: "some_tool",
  scopes: [],
  touches: touches.map((text): Touch => {
    const colon = text.indexOf(":")
    return { verb: text.slice(0, colon) as Touch["verb"], resource: text.slice(colon + 1) }
  })
})

const grant = (text: string): Authority.Grant => Result.getOrThrow(Authority.parseGrant(text))
const granting = (...grants: ReadonlyArray<string>) =>
  Authority.fromGrants({ scopes: "all", resources: grants.map(grant) })

const permits = (authority: Authority.Authority, need: Authority.Need) =>
  Effect.map(authority.check(need), (denied) => denied.length === 0)

describe("fromGrants", () => {
  it.effect("decides on verb and resource, whatever tool asks", () =>
    Effect.gen(function* () {
      const authority = granting("write:workspace:notes/**", "read:workspace:**")
      assert.isTrue(yield* permits(authority, touching("write:workspace:notes/a.md", "read:workspace:x")))
      for (const refused of [
        "write:workspace:other.md",
        "delete:workspace:notes/a.md",
        "write:workspace:notes-private/x",
        "write:workspace:notes/../other.md",
        "write:workspace:notes/%2e%2e/other.md",
        "execute:workspace:notes/a.md"
      ]) {
        for (const tool of ["write_file", "shell"]) {
          assert.isFalse(yield* permits(authority, { ...touching(refused), tool }), refused)
        }
      }
    })
  )

  it.effect("names every scope and resource that is refused, once, and nothing of what is permitted", () =>
    Effect.gen(function* () {
      const authority = Authority.fromGrants({ scopes: ["billing:read"], resources: [grant("read:invoice:*")] })
      const denied = yield* authority.check({
        tool: "create_invoice",
        scopes: ["billing:read", "billing:write"],
        touches: [...touching("send:invoice:order-431", "read:invoice:order-431", "send:invoice:order-431").touches]
      })
      assert.deepStrictEqual(denied, [
        { what: "scope billing:write", reason: "this run does not have it" },
        { what: "send invoice:order-431", reason: "this run is not permitted to" }
      ])
    })
  )

  it.effect("refuses a resource it cannot read, and says why", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* granting("*:workspace:**").check(touching("read:workspace:../etc/passwd")), [
        {
          what: 'read "workspace:../etc/passwd"',
          reason: "it cannot be checked: it leads out of where it begins"
        }
      ])
    })
  )

  it.effect("lets a denial outweigh every grant, also one that allows all", () =>
    Effect.gen(function* () {
      for (const resources of ["all", [grant("*:workspace:**")]] as const) {
        const authority = Authority.fromGrants({ scopes: "all", resources, deny: [grant("*:workspace:secret/**")] })
        assert.isTrue(yield* permits(authority, touching("read:workspace:notes/a.md")))
        for (const refused of [
          "workspace:secret/key",
          "workspace:Secret/key",
          "workspace:a/../secret/key",
          "workspace:**",
          "workspace:secret\\key"
        ]) {
          assert.isFalse(yield* permits(authority, touching(`read:${refused}`)), refused)
        }
      }
    })
  )

  it.effect("fails closed on patterns that cannot be read: they grant nothing and deny their verb everywhere", () =>
    Effect.gen(function* () {
      const broken: Authority.Grant = { verb: "write", pattern: "workspace:../x" }
      const nothing = Authority.fromGrants({ scopes: "all", resources: [broken] })
      assert.isFalse(yield* permits(nothing, touching("write:workspace:x")))
      const denying = Authority.fromGrants({ scopes: "all", resources: "all", deny: [broken] })
      assert.isFalse(yield* permits(denying, touching("write:workspace:y")))
      assert.isTrue(yield* permits(denying, touching("read:workspace:y")))
    })
  )

  it.effect("permits an undeclared tool only by its name or by everything", () =>
    Effect.gen(function* () {
      const need = { tool: "mystery", scopes: [], touches: [Authority.undeclared("mystery")] }
      assert.isFalse(yield* permits(granting("*:workspace:**", "*:https://**/**"), need))
      assert.isTrue(yield* permits(granting("execute:tool:mystery"), need))
      assert.isTrue(yield* permits(Authority.everything, need))
      assert.isTrue(yield* permits(Authority.fromGrants({ scopes: "all", resources: "all" }), need))
    })
  )

  it.effect("permits until the instant of expiry and nothing from then on", () =>
    Effect.gen(function* () {
      const authority = Authority.fromGrants({ scopes: "all", resources: "all", expiresAt: 60_000 })
      yield* TestClock.adjust(59_999)
      assert.isTrue(yield* permits(authority, touching("read:workspace:a")))
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* authority.check(touching()), [
        { what: "tool some_tool", reason: "what this run was permitted has expired" }
      ])
      const never = Authority.fromGrants({ scopes: "all", resources: "all", expiresAt: Number.NaN })
      assert.isFalse(yield* permits(never, touching()))
    })
  )
})

describe("revocable", () => {
  it.effect("refuses the second call if the capability is taken back between the two", () =>
    Effect.gen(function* () {
      const { authority, revoke } = yield* Authority.revocable(granting("write:workspace:**"))
      const need = touching("write:workspace:a")
      assert.isTrue(yield* permits(authority, need))
      assert.isFalse(yield* permits(authority, touching("read:workspace:a")))
      yield* revoke
      assert.deepStrictEqual(yield* authority.check(need), [
        { what: "tool some_tool", reason: "what this run was permitted has been revoked" }
      ])
    })
  )
})

describe("narrow", () => {
  it.effect("permits exactly what both permit", () => {
    const parts = ["workspace:a", "workspace:a/b", "workspace:b", "workspace:*", "workspace:a/*", "workspace:**"]
    const grants = fc.array(
      fc.record({
        verb: fc.constantFrom<Authority.Grant["verb"]>("read", "write", "*"),
        pattern: fc.constantFrom(...parts)
      }),
      { maxLength: 3 }
    )
    const resources = fc.oneof(fc.constant("all" as const), grants)
    const scopes = fc.oneof(fc.constant("all" as const), fc.subarray(["s", "t"]))
    const authorities = fc.record({ scopes, resources, deny: grants })
    const needs = fc.record({
      tool: fc.constant("t"),
      scopes: fc.subarray(["s", "t"]),
      touches: fc.array(
        fc.record({ verb: fc.constantFrom<Touch["verb"]>("read", "write"), resource: fc.constantFrom(...parts) }),
        { maxLength: 3 }
      )
    })
    const cases = fc.sample(fc.tuple(authorities, authorities, needs), { numRuns: 600, seed: 5 })
    return Effect.gen(function* () {
      const seen = new Set<string>()
      for (const [above, below, need] of cases) {
        const [parent, child] = [Authority.fromGrants(above, "parent"), Authority.fromGrants(below, "child")]
        const both = [yield* permits(parent, need), yield* permits(child, need)]
        assert.strictEqual(yield* permits(Authority.narrow(parent, child), need), both[0] && both[1])
        seen.add(String(both))
      }
      assert.strictEqual(seen.size, 4, "all four combinations occurred")
    })
  })

  it.effect("never widens, and names both", () =>
    Effect.gen(function* () {
      const narrowed = Authority.narrow(granting("read:workspace:**"), Authority.everything)
      assert.strictEqual(narrowed.name, "grants > everything")
      assert.isFalse(yield* permits(narrowed, touching("write:workspace:a")))
      assert.isTrue(yield* permits(narrowed, touching("read:workspace:a")))
    })
  )
})

describe("parseGrant", () => {
  const refused = (text: string) => Result.getOrThrow(Result.flip(Authority.parseGrant(text)))

  it("reads verb and pattern, colons in the resource included", () => {
    assert.deepStrictEqual(grant("write:workspace:notes/**"), { verb: "write", pattern: "workspace:notes/**" })
    assert.deepStrictEqual(grant("*:https://api.example.com:8443/*"), {
      verb: "*",
      pattern: "https://api.example.com:8443/*"
    })
  })

  it("says what is wrong with anything else", () => {
    const cases: ReadonlyArray<readonly [string, RegExp]> = [
      ["", /is not a grant of the form VERB:RESOURCE, as in write:workspace:notes\/\*\*$/],
      ["notes", /^"notes" is not a grant of the form VERB:RESOURCE/],
      ["wirte:workspace:x", /there is no verb "wirte", did you mean write\?$/],
      [
        "workspace:notes/**",
        /there is no verb "workspace", the verbs are read, write, delete, send, execute and \* for all$/
      ],
      ["read:", /the resource is missing$/],
      ["read:notes/**", /does not begin with a kind, as in workspace:notes\/a\.md$/],
      ["read:workspace:../x", /leads out of where it begins$/],
      ["send:https://h:*/x", /it is not a URL$/],
      ["send:https://h/x?q=1", /a pattern ends before \? and #$/]
    ]
    for (const [text, expected] of cases) assert.match(refused(text), expected)
  })
})
