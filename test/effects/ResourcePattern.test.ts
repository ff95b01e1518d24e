import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Pattern from "../../src/effects/ResourcePattern.ts"

const read = (text: string): Pattern.Resource => {
  const resource = Pattern.read(text)
  if (typeof resource === "string") throw new Error(`${text}: ${resource}`)
  return resource
}

const covers = (pattern: string, resource: string) => Pattern.covers(read(pattern), read(resource))
const overlaps = (pattern: string, resource: string) => Pattern.overlaps(read(pattern), read(resource))

describe("read", () => {
  it("gives one spelling to what is one resource", () => {
    const same: ReadonlyArray<readonly [string, string]> = [
      ["workspace:a/../b", "workspace:b"],
      ["workspace:./a//b/", "workspace:a/b"],
      ["WORKSPACE:a", "workspace:a"],
      ["https://API.Example.com:443/a/%2e%2e/b?q=1#f", "https://api.example.com/b"],
      ["https://api.example.com./%62", "https://api.example.com/b"],
      ["https:api.example.com/b", "https://api.example.com/b"],
      ["https://h/caf%C3%A9", "https://h/café"],
      ["mcp://Server/x/./y", "mcp://server/x/y"],
      ["file://localhost/etc/x", "file:/etc/x"],
      ["invoice:order-431:v1", "invoice:order-431:v1"]
    ]
    for (const [one, other] of same) {
      assert.isDefined(Pattern.canonical(one), one)
      assert.strictEqual(Pattern.canonical(one), Pattern.canonical(other), one)
    }
    assert.strictEqual(Pattern.canonical("https://H:8443/a/"), "https://h:8443/a")
    assert.strictEqual(Pattern.canonical("workspace:"), "workspace:")
  })

  it("does not read what can be read in two ways", () => {
    const texts = [
      "workspace:../x",
      "workspace:a/../../x",
      "workspace:/../x",
      "workspace:notes\\..\\x",
      "workspace:notes/%2e%2e/x",
      "workspace:notes%2fx",
      "workspace:notes/%252e%252e/x",
      "workspace:a\u0000b",
      "workspace:a\nb",
      "https://h/a%2Fb",
      "https://h/a%5cb",
      "https://h/a%252fb",
      "https://h/%zz",
      "https://h/%ff",
      "https://h:port/",
      "https://api.example.com@evil.example/x",
      "https:\\\\evil.example\\x",
      "notes/a.md",
      ":x",
      "",
      "1a:x",
      `workspace:${"a".repeat(Pattern.maxResourceLength)}`
    ]
    for (const text of texts) {
      assert.isString(Pattern.read(text), text)
      assert.isUndefined(Pattern.canonical(text), text)
    }
  })

  it("reads or refuses any text, and leaves no dots in what it read", () => {
    const pieces = fc.constantFrom(
      "workspace:",
      "https://",
      "a",
      "..",
      ".",
      "/",
      "%2e",
      "%41",
      "é",
      ":",
      "*",
      "?",
      "@",
      " "
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces, { maxLength: 12 }).map((list) => list.join(""))
        ),
        (text) => {
          const once = Pattern.canonical(text)
          if (once === undefined) return
          const path = read(text).path
          assert.isFalse(path.includes("..") || path.includes("."), text)
        }
      ),
      { numRuns: 2000 }
    )
  })
})

describe("covers", () => {
  it("takes * for one part or less and ** for any number of parts", () => {
    const yes: ReadonlyArray<readonly [string, string]> = [
      ["workspace:notes/**", "workspace:notes/a.md"],
      ["workspace:notes/**", "workspace:notes/deep/er/a.md"],
      ["workspace:notes/**", "workspace:notes"],
      ["workspace:**", "workspace:"],
      ["workspace:**/*.md", "workspace:a/b/c.md"],
      ["workspace:a*c/x", "workspace:abbc/x"],
      ["workspace:a/**/z/**/y", "workspace:a/1/z/2/z/3/y"],
      ["invoice:order-*", "invoice:order-431"],
      ["https://api.example.com/*", "https://API.example.com/v1?q=a/b"],
      ["https://*.example.com/**", "https://eu.example.com/a/b"],
      ["https://**.example.com/**", "https://a.b.example.com:443/"],
      ["http://localhost:8080/**", "http://localhost:8080/x"],
      ["file:/etc/**", "file:///etc/hosts"]
    ]
    for (const [pattern, resource] of yes) assert.isTrue(covers(pattern, resource), `${pattern} ${resource}`)
    const no: ReadonlyArray<readonly [string, string]> = [
      ["workspace:notes/**", "workspace:notes-private/x"],
      ["workspace:notes/**", "workspace:notes/../secret"],
      ["workspace:notes/**", "workspace:other/notes/x"],
      ["workspace:notes/*", "workspace:notes/a/b"],
      ["workspace:notes/*", "workspace:notes"],
      ["workspace:notes/**", "workspace:Notes/a"],
      ["workspace:**", "workspace:/etc/passwd"],
      ["workspace:**", "artifact:x"],
      ["https://api.example.com/**", "https://api.example.com.evil.example/x"],
      ["https://api.example.com/**", "https://evil.example/api.example.com/x"],
      ["https://api.example.com/**", "http://api.example.com/x"],
      ["https://api.example.com/**", "https://api.example.com:8443/x"],
      ["https://*.example.com/**", "https://a.b.example.com/x"],
      ["https://*.example.com/**", "https://example.com/x"],
      ["https://api.example.com/v1/**", "https://api.example.com/v1/%2e%2e/admin"],
      ["https:**", "workspace:x"]
    ]
    for (const [pattern, resource] of no) assert.isFalse(covers(pattern, resource), `${pattern} ${resource}`)
  })

  it("contains a set of resources only as a whole", () => {
    assert.isTrue(covers("workspace:notes/**", "workspace:notes/**"))
    assert.isTrue(covers("workspace:**", "workspace:notes/*.md"))
    assert.isFalse(covers("workspace:*", "workspace:**"))
    assert.isFalse(covers("workspace:*/x", "workspace:**/x"))
    assert.isFalse(covers("workspace:notes/**", "workspace:**"))
    assert.isFalse(covers("workspace:*.md", "workspace:*"))
  })

  it("agrees with the definition by recursion", () => {
    const matches = (pattern: string, text: string): boolean => {
      if (pattern === "") return text === ""
      if (pattern[0] !== "*") return pattern[0] === text[0] && matches(pattern.slice(1), text.slice(1))
      return matches(pattern.slice(1), text) || (text !== "" && matches(pattern, text.slice(1)))
    }
    const word = (letters: string, max: number) =>
      fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: max }).map((list) => list.join(""))
    const pattern = word("ab*", 6).filter((text) => text !== "**")
    fc.assert(
      fc.property(pattern, word("ab", 8), (one, text) => {
        assert.strictEqual(covers(`x:${one}`, `x:${text}`), matches(one, text))
        // The same over parts: every letter a part of its own, every star a `**`.
        const parts = [...one].map((letter) => (letter === "*" ? "**" : letter)).join("/")
        assert.strictEqual(covers(`x:${parts}`, `x:${[...text].join("/")}`), matches(one, text))
      }),
      { numRuns: 1000 }
    )
  })

  it("does not blow up on patterns made to go back and forth", () => {
    // Tried in every way this would take longer than anybody waits: an answer at all is the claim.
    const deep = `x:${"**/a/".repeat(400)}b`
    assert.isFalse(covers(deep, `x:${"a/".repeat(1000)}c`))
    assert.isFalse(covers(`x:${"a*".repeat(1000)}b`, `x:${"a".repeat(4000)}`))
  })
})

describe("overlaps", () => {
  it("finds what a denial means whatever its case, composition, port or leading slash", () => {
    const yes: ReadonlyArray<readonly [string, string]> = [
      ["workspace:secret/**", "workspace:SECRET/x"],
      ["workspace:café/**", "workspace:cafe\u0301/x"],
      ["workspace:secret/**", "workspace:/secret/x"],
      ["https://evil.example/**", "https://EVIL.example.:8443/x"],
      ["workspace:secret/**", "workspace:**"],
      ["workspace:**/.env", "workspace:app/**"],
      ["workspace:notes/*.key", "workspace:notes/*"],
      ["https://evil.example/**", "https://*/x"]
    ]
    for (const [pattern, resource] of yes) assert.isTrue(overlaps(pattern, resource), `${pattern} ${resource}`)
    const no: ReadonlyArray<readonly [string, string]> = [
      ["workspace:secret/**", "workspace:public/x"],
      ["workspace:secret/**", "workspace:public/**"],
      ["workspace:secret/**", "artifact:secret/x"],
      ["https://evil.example:8443/**", "https://evil.example/x"],
      ["https://evil.example/**", "https://good.example/x"]
    ]
    for (const [pattern, resource] of no) assert.isFalse(overlaps(pattern, resource), `${pattern} ${resource}`)
  })

  it("holds wherever the pattern covers", () => {
    const part = fc.constantFrom("a", "b", "*", "**", "a*")
    const path = fc.array(part, { maxLength: 5 }).map((list) => `x:${list.join("/")}`)
    fc.assert(
      fc.property(path, path, (pattern, resource) => {
        if (covers(pattern, resource)) assert.isTrue(overlaps(pattern, resource))
      }),
      { numRuns: 2000 }
    )
  })
})
