import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { keysOf, nameOf, namesIn } from "../../../../src/effects/trace/claims/Names.ts"

const keys = (text: string): ReadonlyArray<string> => [...namesIn(text)].map(({ key, kind }) => `${kind} ${key}`)

describe("namesIn", () => {
  it("finds files, addresses of the web and of mail, without the marks around them", () => {
    assert.deepStrictEqual(
      keys('See "./a/Report.md", (b.csv). https://www.example.org/x/ and <ann@example.org>; c.json’s and C:\\d\\e.txt'),
      ["file a/report.md", "file b.csv", "url example.org/x", "mail ann@example.org", "file c.json", "file c:/d/e.txt"]
    )
  })

  it("takes products, versions, abbreviations and ends of sentences for none", () => {
    assert.deepStrictEqual(
      keys("Node.js and Next.js, e.g. v1.2.3, 3.14, i.e. the end.Then Dr. Who, .md and a.nosuch"),
      []
    )
  })

  it("gives a file's name the ends of its path, and an address its host", () => {
    assert.deepStrictEqual(keysOf(nameOf("/srv/app/conf/a.toml")!), [
      "a.toml",
      "conf/a.toml",
      "app/conf/a.toml",
      "srv/app/conf/a.toml"
    ])
    assert.deepStrictEqual(keysOf(nameOf("https://Example.org/x")!), ["example.org/x", "example.org"])
  })

  it("never fails", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary", maxLength: 20 }), (text, before) => {
        for (const name of namesIn(`${text} ${before}.md http://${before}`))
          assert.include(keysOf(name), name.key.split("/").slice(-6).join("/"))
      })
    )
  })
})
