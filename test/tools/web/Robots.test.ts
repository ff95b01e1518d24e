import { assert, describe, it } from "@effect/vitest"
import { permits } from "../../../src/tools/web/Robots.ts"

const may = (rules: string, path: string): boolean => permits(`User-agent: *\n${rules}`, "effect-writ", path)

describe("robots rules", () => {
  it("follow the examples of RFC 9309", () => {
    for (const [pattern, fitting, other] of [
      [
        "/fish",
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fish.php?id=x"],
        ["/Fish.asp", "/catfish", "/?id=fish"]
      ],
      ["/fish*", ["/fish", "/fishheads/yummy.html"], ["/Fish.asp", "/catfish"]],
      ["/fish/", ["/fish/", "/fish/?id=x", "/fish/salmon.htm"], ["/fish", "/fish.html", "/animals/fish/"]],
      ["/*.php", ["/index.php", "/folder/filename.php?x", "/folder/any.php.file.html"], ["/", "/windows.PHP"]],
      ["/*.php$", ["/filename.php", "/folder/filename.php"], ["/filename.php?x", "/filename.php/", "/filename.php5"]],
      ["/fish*.php", ["/fish.php", "/fishheads/catfish.php?x"], ["/Fish.PHP"]]
    ] as const) {
      for (const path of fitting) assert.isFalse(may(`Disallow: ${pattern}`, path), `${pattern} ${path}`)
      for (const path of other) assert.isTrue(may(`Disallow: ${pattern}`, path), `${pattern} ${path}`)
    }
  })

  it("let the longest rule decide, and allow where two are equally long", () => {
    assert.isTrue(may("Allow: /p\nDisallow: /", "/page"))
    assert.isTrue(may("Allow: /folder\nDisallow: /folder", "/folder/page"))
    assert.isFalse(may("Allow: /page\nDisallow: /*.htm", "/page.htm"))
    assert.isTrue(may("Allow: /$\nDisallow: /", "/"))
    assert.isFalse(may("Allow: /$\nDisallow: /", "/page.htm"))
    assert.isTrue(may("Disallow:", "/x"))
    assert.isTrue(may("", "/x"))
  })

  it("join the groups of one agent, and ignore what is no rule", () => {
    const text =
      "Sitemap: x\nUser-Agent: a\nDisallow: /1\n# c\n\nUSER-AGENT: effect-Writ # us\nDisallow : /2 # why\nuser-agent: effect-writ\ndisallow:/3\nnonsense"
    assert.deepStrictEqual(
      ["/1", "/2", "/3"].map((path) => permits(text, "effect-writ", path)),
      [true, false, false]
    )
  })

  it("take no longer for a pattern made of stars", () => {
    assert.isTrue(may(`Disallow: /${"*a".repeat(2_000)}b`, `/${"a".repeat(4_000)}`))
  })
})
