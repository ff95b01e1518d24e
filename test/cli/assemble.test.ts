import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, writ } from "../kit/cli.ts"
import { type Files, project, put, tree } from "../kit/projects.ts"

const files: Files = {
  "assemblies/claims.yaml": `name: claims
model: noop
matrix:
  case: [missing-fields, over-limit]
  size: [{ name: small }, { name: large, model: other }]
prefix:
  - { kind: tools, path: context/tools/*.json }
conversation:
  - { role: user, path: "prompts/{{ case }}.md" }
  - { role: assistant }
`,
  "context/tools/add.json": '{"name":"add","description":"Adds.","input_schema":{"type":"object"}}',
  "prompts/missing-fields.md": "one",
  "prompts/over-limit.md": "two"
}

const assembling = Effect.fnUntraced(function* (root: string, ...args: ReadonlyArray<string>) {
  const { code, err, out } = yield* invoke(["assemble", "claims", "-p", root, ...args])
  return { code, err, out: out.trim() }
})

const namesIn = (run: string): ReadonlyArray<string> => Object.keys(tree(run))

describe("writ assemble", () => {
  it.live("prints the directory it made and nothing else, as seen from where it was called", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      const { code, err, out } = yield* writ(["assemble", "claims"], { cwd: root })
      assert.deepStrictEqual([code, err], [0, ""])
      assert.match(out, /^runs\/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{6}-claims\n$/)
      assert.deepStrictEqual(namesIn(join(root, out.trim())), [
        "missing-fields-large.yaml",
        "missing-fields-small.yaml",
        "over-limit-large.yaml",
        "over-limit-small.yaml"
      ])
    })
  )

  it.live("makes the conversations that were asked for", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      const one = yield* assembling(root, "--case", "over-limit-small")
      assert.deepStrictEqual(namesIn(one.out), ["over-limit-small.yaml"])
      const two = yield* assembling(root, "--case", "missing-fields-small", "--case", "over-limit-large")
      assert.deepStrictEqual(namesIn(two.out), ["missing-fields-small.yaml", "over-limit-large.yaml"])
      const some = yield* assembling(root, "--var", "size=large", "--var", "tone=dry,warm", "--case", "over-limit")
      assert.deepStrictEqual(namesIn(some.out), ["over-limit-large-dry.yaml", "over-limit-large-warm.yaml"])
    })
  )

  it.live("says all about what it made as JSON", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      const { out } = yield* assembling(root, "--json", "--case", "over-limit-large")
      const { directory, run_id, ...rest } = JSON.parse(out)
      assert.strictEqual(directory, join(root, "runs", run_id))
      assert.deepStrictEqual(rest, {
        conversations: [
          {
            name: "over-limit-large",
            file: join(directory, "over-limit-large.yaml"),
            model: "other",
            binding: { case: "over-limit", size: "large" },
            tools: ["add"],
            messages: 2
          }
        ]
      })
    })
  )

  it.live("ends with 2 and words where the project or the line is wrong, and leaves no run", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [
          ["--case", "nobody"],
          /writ: --case: there is no case nobody: there are missing-fields-small, missing-fields-large,/
        ],
        [["--var", "size=huge"], /writ: --var: size has no value huge: there are small, large/],
        [["--var", "size"], /writ: --var: expected AXIS=VALUE\[,VALUE\], found size/],
        [["--var", "size=small,"], /writ: --var: expected AXIS=VALUE/],
        [["--var", "=x"], /writ: --var: expected AXIS=VALUE/]
      ]
      for (const [args, words] of cases) {
        const { code, err, out } = yield* assembling(root, ...args)
        assert.deepStrictEqual([code, out], [2, ""])
        assert.match(err, words)
      }
      put(root, { "context/tools/broken.json": "{" })
      const { code, err } = yield* assembling(root)
      assert.strictEqual(code, 2)
      assert.match(err, /writ: context\/tools\/broken\.json: line 1, column 2: it is not JSON that can be used/)
      assert.isFalse(existsSync(join(root, "runs")))
    })
  )

  it.live("says what is wrong as JSON where JSON was asked for", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["assemble", "none", "--json", "-p", yield* directory])
      assert.strictEqual(code, 2)
      assert.deepStrictEqual(Object.keys(JSON.parse(out).error), ["exit_code", "message"])
    })
  )
})
