import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { fields, flagOf, names } from "../../src/effects/SettingFields.ts"

const text = readFileSync(join(import.meta.dirname, "../../docs/cli.md"), "utf8")

describe("docs/cli.md", () => {
  it("describes every setting as help does", () => {
    for (const name of names) {
      const { description, form } = fields[name]
      assert.include(text, `| \`--${flagOf(name)}\` | \`${form.replaceAll("|", "\\|")}\` | ${description} |`)
    }
  })
})
