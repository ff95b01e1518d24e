import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { expect, it } from "vitest"
import { effectVersion, version } from "../../src/effects/Version.ts"

const read = (path: string | URL) => JSON.parse(readFileSync(path, "utf8")) as Record<string, never>

const ours = read(new URL("../../package.json", import.meta.url)) as unknown as {
  readonly version: string
  readonly peerDependencies: Readonly<Record<string, string>>
}

it("the version in every trace is the package's", () => {
  expect(version).toBe(ours.version)
})

it("the version of Effect in every trace is the one that is asked for, and the one that is installed", () => {
  const installed = read(createRequire(import.meta.url).resolve("effect/package.json")) as unknown as {
    readonly version: string
  }
  expect(effectVersion).toBe(ours.peerDependencies["effect"])
  expect(effectVersion).toBe(installed.version)
})
