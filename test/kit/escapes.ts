/** A workspace, what lies around it, and every way out that somebody thought of. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"

/** In every file that must not be reached. */
export const canary = "CANARY-7c1f"

export interface Scene {
  readonly base: string
  readonly root: string
  readonly artifacts: string
  /** What the machine let us make: not everybody may make a device or give a file away. */
  readonly has: { readonly device: boolean; readonly foreign: boolean }
}

const attempt = (make: () => void): boolean => {
  try {
    make()
    return true
  } catch {
    return false
  }
}

const fill = (base: string): Scene => {
  const root = join(base, "data")
  const artifacts = join(base, "artifacts")
  const outside = (...path: ReadonlyArray<string>) => fs.writeFileSync(join(base, ...path), canary)
  for (const directory of ["data/sub/deep", "data/empty", "data-private", "artifacts", "deep"]) {
    fs.mkdirSync(join(base, directory), { recursive: true })
  }
  outside("secret.txt")
  outside("data-private", "x")
  outside("deep", "secret.txt")
  fs.writeFileSync(join(root, "notes.md"), "notes")
  fs.writeFileSync(join(root, "sub", "inner.txt"), "inner")
  fs.writeFileSync(join(root, "sub", "deep", "leaf.txt"), "leaf")
  fs.writeFileSync(join(root, "picture.png"), Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0, 0xff))
  const link = (target: string, name: string) => fs.symlinkSync(target, join(root, name))
  link("../secret.txt", "link")
  link(join(base, "secret.txt"), "absolute-link")
  link("..", "up")
  link("../data-private", "sibling")
  link("/", "slash")
  link("/proc/self/fd", "fds")
  link("/proc/self/root", "proc-root")
  link("/proc/self/environ", "environ")
  link("/dev/stdin", "stdin")
  link("link", "chain")
  link("loop", "loop")
  link("sub", "inside-dir")
  link("notes.md", "inside-file")
  link("../not-yet", "dangling")
  link("sub/../../secret.txt", "crooked")
  link("../../secret.txt", "sub/link")
  link("../..", "sub/deep/up")
  execFileSync("mkfifo", [join(root, "pipe")])
  const device = attempt(() => void execFileSync("mknod", [join(root, "device"), "c", "1", "5"], { stdio: "ignore" }))
  const foreign = attempt(() => {
    outside("theirs.txt")
    fs.chownSync(join(base, "theirs.txt"), 12345, 12345)
    fs.linkSync(join(base, "theirs.txt"), join(root, "hard"))
  })
  fs.writeFileSync(join(artifacts, `${"0".repeat(16)}-report.md`), "report")
  fs.symlinkSync("../secret.txt", join(artifacts, `${"1".repeat(16)}-linked.md`))
  fs.symlinkSync("..", join(artifacts, `${"2".repeat(16)}-up`))
  fs.mkdirSync(join(artifacts, `${"3".repeat(16)}-directory`))
  return { base, root, artifacts, has: { device, foreign } }
}

/** All of it, with a socket somebody listens on, until the scope closes. */
export const scene = Effect.acquireRelease(
  Effect.gen(function* () {
    const made = fill(fs.mkdtempSync(join(tmpdir(), "writ-escape-")))
    const server = net.createServer()
    yield* Effect.callback<void>((resume) => void server.listen(join(made.root, "socket"), () => resume(Effect.void)))
    return { ...made, server }
  }),
  ({ base, server }) =>
    Effect.sync(() => {
      server.close()
      fs.rmSync(base, { recursive: true })
    })
)

/** A path a model might ask for, and what the answer has to say. */
export type Escape = readonly [path: string, answer: RegExp]

const noFile = /no such file/
const climbs = /must not contain \.\./
const isAbsolute = /must be relative/
const viaLink = /symbolic link/
const looksLike = /look like/
const special = /not a regular file/

const upwards: ReadonlyArray<Escape> = [
  ["../secret.txt", climbs],
  ["..", climbs],
  ["../", climbs],
  ["./../secret.txt", climbs],
  ["sub/../../secret.txt", climbs],
  ["sub/deep/../../../secret.txt", climbs],
  ["../data-private/x", climbs],
  ["../data/../secret.txt", climbs],
  ["not-yet/../../secret.txt", climbs],
  [`${"../".repeat(40)}etc/passwd`, climbs],
  ["sub//..//..//secret.txt", climbs],
  ["../data/notes.md", climbs]
]

const fromTheTop = ({ base, root }: Scene): ReadonlyArray<Escape> => [
  [join(base, "secret.txt"), isAbsolute],
  [`${root}-private/x`, isAbsolute],
  [join(root, "notes.md"), isAbsolute],
  ["/etc/passwd", isAbsolute],
  ["//etc/passwd", isAbsolute],
  ["/proc/self/environ", isAbsolute],
  ["/proc/self/fd/0", isAbsolute],
  ["/dev/fd/0", isAbsolute],
  ["C:/Windows/win.ini", isAbsolute],
  ["c:secret.txt", isAbsolute]
]

const otherSeparators = ({ base }: Scene): ReadonlyArray<Escape> => [
  ["..\\secret.txt", /backslash/],
  ["sub\\..\\..\\secret.txt", /backslash/],
  ["\\\\server\\share\\x", /backslash/],
  [`file://${base}/secret.txt`, noFile],
  ["~/secret.txt", noFile],
  ["$HOME/secret.txt", noFile],
  ["%2e%2e/secret.txt", noFile],
  ["..%2fsecret.txt", noFile],
  ["%2e%2e%2fsecret.txt", noFile],
  [".%00./secret.txt", noFile]
]

const lookAlikes: ReadonlyArray<Escape> = [
  ["\uff0e\uff0e/secret.txt", looksLike],
  ["\u2025/secret.txt", looksLike],
  [".\u2024/secret.txt", looksLike],
  ["..\uff0fsecret.txt", looksLike],
  ["..\uff3csecret.txt", looksLike],
  ["..\u2215secret.txt", noFile],
  ["..\u2044secret.txt", noFile],
  ["\u200b../secret.txt", noFile],
  ["..\u200b/secret.txt", noFile],
  ["n\u043etes.md", noFile],
  ["notes.md\u200b", noFile],
  ["NOTES.MD", noFile],
  ["Notes.md", noFile],
  ["\u202emd.seton", noFile]
]

const dropped: ReadonlyArray<Escape> = [
  ["notes.md.", noFile],
  ["notes.md ", noFile],
  [" notes.md", noFile],
  ["notes.md::$DATA", noFile],
  ["notes.md\n", noFile],
  [".. /secret.txt", noFile],
  [".../secret.txt", noFile],
  ["notes.md\0.png", /NUL/],
  ["../secret.txt\0", /NUL/],
  ["\0", /NUL/],
  ["\ud800../secret.txt", /half a character/],
  ["x".repeat(256), /more than 255 bytes/],
  ["é".repeat(128), /more than 255 bytes/],
  ["a/".repeat(3000), /too long/]
]

const overLinks: ReadonlyArray<Escape> = [
  ["link", viaLink],
  ["absolute-link", viaLink],
  ["chain", viaLink],
  ["loop", viaLink],
  ["crooked", viaLink],
  ["dangling", viaLink],
  ["inside-file", viaLink],
  ["inside-dir/inner.txt", viaLink],
  ["up/secret.txt", viaLink],
  ["up/data/notes.md", viaLink],
  ["sibling/x", viaLink],
  ["slash/etc/passwd", viaLink],
  ["sub/link", viaLink],
  ["sub/deep/up/notes.md", viaLink],
  ["up/not-yet/x", viaLink],
  ["fds/0", viaLink],
  ["proc-root/etc/passwd", viaLink],
  ["environ", viaLink],
  ["stdin", viaLink],
  ["./link", viaLink],
  ["sub/./link", viaLink]
]

const noFiles: ReadonlyArray<Escape> = [
  ["", /empty/],
  [".", /names a directory/],
  ["./", /names a directory/],
  ["sub/", /names a directory/],
  ["sub/.", /names a directory/],
  ["sub", /is a directory/],
  ["empty", /is a directory/],
  ["notes.md/", /names a directory/],
  ["notes.md/x", /not a directory/],
  ["pipe", special],
  ["socket", special],
  ["pipe/x", /not a directory/]
]

/** Ways out of `root`. Those that only look like one end at a file that is not there. */
export const escapes = (place: Scene): ReadonlyArray<Escape> => [
  ...upwards,
  ...fromTheTop(place),
  ...otherSeparators(place),
  ...lookAlikes,
  ...dropped,
  ...overLinks,
  ...noFiles,
  ...(place.has.device ? [["device", special] satisfies Escape] : []),
  ...(place.has.foreign ? [["hard", /belongs to somebody else/] satisfies Escape] : [])
]

/** Ways out of the directory of artifacts. */
export const artifactEscapes: ReadonlyArray<string> = [
  "../secret.txt",
  "../data/notes.md",
  "/etc/passwd",
  "..",
  ".",
  "",
  "a/b",
  "report.md\0",
  "report.md/..",
  "x".repeat(300),
  `${"0".repeat(16)}-../secret.txt`,
  `${"1".repeat(16)}-linked.md`,
  "linked.md",
  `${"2".repeat(16)}-up`,
  "up",
  `${"3".repeat(16)}-directory`,
  "directory",
  ".hidden"
]

/** Swaps, so many times each: a file for a link out, a directory for a link up, a file for a pipe, a directory for another. */
export const swapper = `
const fs = require("node:fs"), path = require("node:path"), { execFileSync } = require("node:child_process")
const [root, turns] = [process.argv[2], Number(process.argv[3])]
const at = (name) => path.join(root, name)
fs.writeFileSync(at("swap-file"), "harmless"); fs.symlinkSync("../secret.txt", at("swap-file.link"))
fs.mkdirSync(at("swap-dir/deep"), { recursive: true }); fs.writeFileSync(at("swap-dir/secret.txt"), "harmless")
fs.writeFileSync(at("swap-dir/deep/secret.txt"), "harmless"); fs.symlinkSync("..", at("swap-dir.link"))
fs.writeFileSync(at("swap-pipe"), "harmless"); execFileSync("mkfifo", [at("swap-pipe.link")])
const swap = (name) => {
  fs.renameSync(at(name), at(name + ".real")); fs.renameSync(at(name + ".link"), at(name))
  fs.renameSync(at(name), at(name + ".link")); fs.renameSync(at(name + ".real"), at(name))
}
process.stdout.write("ready\\n")
for (let turn = 0; turn < turns; turn++) for (const name of ["swap-file", "swap-dir", "swap-pipe"]) swap(name)
`

/** Paths the swapper is busy with. */
export const swapped: ReadonlyArray<string> = [
  "swap-file",
  "swap-dir/secret.txt",
  "swap-dir/deep/secret.txt",
  "swap-dir/data/notes.md",
  "swap-pipe"
]
