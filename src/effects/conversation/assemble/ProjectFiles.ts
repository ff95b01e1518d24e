/** The files of a project that an assembly includes: found by path or by one `*`, read as they are, each once. Throws `Refusal`s. */
import { readdirSync, readFileSync, realpathSync } from "node:fs"
import { isAbsolute, join, normalize, relative, resolve, sep } from "node:path"
import { look, reasonOf } from "../../../actors/Directories.ts"
import { type Path, Refusal } from "../YamlDocuments.ts"
import { inOrder } from "./Assembly.ts"

/** A file as the project calls it, and its text. */
export interface ProjectFile {
  readonly path: string
  readonly text: string
}

/** Whether a path leads out of the directory it begins in. */
const leavesRoot = (path: string): boolean => /^\.\.(?:\/|$)/.test(normalize(path))

const refuseSpelling = (path: string, place: Path): void => {
  if (path.includes("\0")) throw new Refusal(place, `${JSON.stringify(path)}: a path has no NUL in it`)
  if (path.includes("\\")) throw new Refusal(place, `${path}: write / between directories, not \\`)
  if (isAbsolute(path) || /^[A-Za-z]:/.test(path)) {
    throw new Refusal(place, `${path} is absolute: write it as seen from the project's directory`)
  }
}

export class ProjectFiles {
  readonly root: string
  readonly #texts = new Map<string, string>()
  /** Files whose links were followed, and did not lead out. */
  readonly #within = new Set<string>()

  constructor(root: string) {
    this.root = resolve(root)
  }

  /** One file inside the project. */
  file(path: string, place: Path): ProjectFile {
    this.#refuseOutside(path, place)
    if (path.includes("*"))
      throw new Refusal(place, `${path}: this is one file; * is for system, examples, context and tools`)
    return this.#inside(path, place)
  }

  /** One file that may lie outside, named as seen from the project. */
  external(path: string, place: Path): ProjectFile {
    refuseSpelling(path, place)
    if (path.includes("*")) throw new Refusal(place, `${path}: this is one file; * is for files inside the project`)
    return this.#read(path, place)
  }

  /** The files a pattern matches, in the order of their names; at least one. `*` does not match a dot at the beginning. */
  glob(pattern: string, place: Path): ReadonlyArray<ProjectFile> {
    this.#refuseOutside(pattern, place)
    const segments = normalize(pattern).split("/")
    const last = segments.pop()!
    if (pattern.includes("**"))
      throw new Refusal(place, `${pattern}: ** is not supported: name each directory in a block of its own`)
    if (segments.some((segment) => segment.includes("*"))) {
      throw new Refusal(place, `${pattern}: * may stand in the last part only: name the directory`)
    }
    const [before = "", after, ...more] = last.split("*")
    if (after === undefined) return [this.#inside(pattern, place)]
    if (more.length > 0) throw new Refusal(place, `${pattern}: at most one * is supported`)
    const names = this.#namesIn(segments.join("/"), place).filter(
      (name) =>
        name.length >= before.length + after.length &&
        name.startsWith(before) &&
        name.endsWith(after) &&
        (before !== "" || !name.startsWith("."))
    )
    if (names.length === 0) {
      throw new Refusal(
        place,
        `${pattern} matches no file in ${resolve(this.root, ...segments)} (* is the only wildcard)`
      )
    }
    return names.map((name) => this.#inside(join(...segments, name), place))
  }

  #refuseOutside(path: string, place: Path): void {
    refuseSpelling(path, place)
    if (leavesRoot(path))
      throw new Refusal(place, `${path} leads out of the project: use kind: external for such a file`)
  }

  #namesIn(directory: string, place: Path): ReadonlyArray<string> {
    const real = resolve(this.root, directory)
    const found = look(real)
    if (found._tag !== "Directory") {
      throw new Refusal(
        place,
        found._tag === "Nothing" ? `there is no directory ${real}` : `${real} is not a directory`
      )
    }
    try {
      return readdirSync(real, { withFileTypes: true })
        .filter((entry) => entry.isFile() || (entry.isSymbolicLink() && look(join(real, entry.name))._tag === "File"))
        .map(({ name }) => name)
        .sort(inOrder)
    } catch (cause) {
      throw new Refusal(place, `the directory ${real} cannot be read: ${reasonOf(cause)}`)
    }
  }

  /** Links may lead from one place of the project to another, and not out of it. */
  #inside(path: string, place: Path): ProjectFile {
    const file = this.#read(path, place)
    const named = resolve(this.root, path)
    if (this.#within.has(named)) return file
    const from = relative(realpathSync(this.root), realpathSync(named))
    if (from === ".." || from.startsWith(`..${sep}`) || isAbsolute(from))
      throw new Refusal(place, `${path} leads out of the project, by a link: use kind: external for such a file`)
    this.#within.add(named)
    return file
  }

  #read(path: string, place: Path): ProjectFile {
    const real = resolve(this.root, path)
    const known = this.#texts.get(real)
    if (known !== undefined) return { path, text: known }
    const found = look(real)
    if (found._tag === "Nothing") throw new Refusal(place, `there is no file ${path} (${real})`)
    // A pipe would be waited for, and a device never ends.
    if (found._tag !== "File") throw new Refusal(place, `${path} (${real}) is not a file`)
    let bytes: Uint8Array
    try {
      bytes = readFileSync(real)
    } catch (cause) {
      throw new Refusal(place, `${path} (${real}) cannot be read: ${reasonOf(cause)}`)
    }
    let text: string
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
    } catch {
      throw new Refusal(place, `${path} (${real}) is not UTF-8 text`)
    }
    this.#texts.set(real, text)
    return { path, text }
  }
}
