import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import type * as Command from "effect/cli/Command"
import { writ } from "../../src/cli/Commands.ts"
import { fields, flagOf, names } from "../../src/effects/SettingFields.ts"

const text = readFileSync(join(import.meta.dirname, "../../docs/cli.md"), "utf8")

describe("docs/cli.md", () => {
  it("describes every setting as help does", () => {
    for (const name of names) {
      const { description, form } = fields[name]
      assert.include(text, `| \`--${flagOf(name)}\` | \`${form.replaceAll("|", "\\|")}\` | ${description} |`)
    }
  })

  it("has a line for every command there is", () => {
    const listed = (command: Command.Command.Any, path: string): ReadonlyArray<string> => {
      const below = command.subcommands.flatMap(({ commands }) => commands)
      return below.length === 0 ? [path] : below.flatMap((one) => listed(one, `${path} ${one.name}`))
    }
    const all = listed(writ, "writ")
    assert.includeMembers([...all], ["writ run", "writ trace diff", "writ trace export"])
    for (const path of all) assert.match(text, new RegExp(`^\\| \`${path}[\` ]`, "m"), path)
  })
})
