/** Projects on disk for tests: files by path, gone when the test ends. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export type Files = Readonly<Record<string, string | Uint8Array>>

/** Writes files under `root`; directories as they are needed. */
export const put = (root: string, files: Files): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

/** A new directory with these files. */
export const project = (files: Files): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = join(mkdtempSync(join(tmpdir(), "writ-project-")), "project")
      mkdirSync(root)
      put(root, files)
      return root
    }),
    (root) => Effect.sync(() => rmSync(dirname(root), { recursive: true, force: true }))
  )

/** Every file under a directory and its text, by path, hidden ones included. */
export const tree = (root: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => join(parentPath, name))
      .sort()
      .map((path) => [path.slice(root.length + 1), readFileSync(path, "utf8")])
  )
