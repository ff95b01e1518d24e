import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { toolsPage } from "../../scripts/toolsPage.ts"
import { aboutOf } from "../../src/tools/About.ts"
import { toolkit } from "../../src/tools/builtin/index.ts"
import { artifactEscapes, escapes } from "../kit/escapes.ts"

const text = readFileSync(new URL("../../docs/tools.md", import.meta.url), "utf8")

describe("docs/tools.md", () => {
  it.live("is what npm run docs makes of the tools there are", () =>
    Effect.map(toolsPage, (page) => assert.strictEqual(text, page, "run npm run docs"))
  )

  it("is told something by every tool, and does not change what a model is told", () => {
    for (const tool of Object.values(toolkit.tools)) {
      const said = aboutOf(tool)
      assert.isAbove(said?.text.length ?? 0, 20, tool.name)
    }
  })

  it("counts the ways out as they are", () => {
    const place = { base: "/b", root: "/b/data", artifacts: "/b/artifacts" }
    const least = escapes({ ...place, has: { device: false, foreign: false } }).length
    assert.include(text.replaceAll("\n", " "), `tries ${least} ways out of the workspace`)
    assert.include(text.replaceAll("\n", " "), `and ${artifactEscapes.length} out of the artifacts`)
  })
})
