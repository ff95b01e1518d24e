/**
 * Makes what is published. `dist/` is the library: one file per source file, types beside it. `dist-cli/` is the command:
 * bundled, minified, lazily split, so that `writ --help` reads a handful of files. `dist/cli.js` starts it.
 *
 * Both trees have the shape of `src/`, and in both `import.meta.url` means what it means in the source: the place of the
 * file it is written in. So `new URL("../engine/worker.js", import.meta.url)` holds everywhere (docs/architecture.md).
 * Types are checked by `npm run types`, not here.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { build, type Plugin } from "esbuild"

/** Files that something names by URL at run time, and the command itself. Absent ones are left out of the bundle. */
const entries = [
  "cli",
  "engine/worker",
  "tools/worker",
  "tools/workerProcess",
  "tools/builtin/index",
  "tools/files/moduleProcess"
]

/** Stay packages: native code, and a pool that names its own worker file. */
const external = ["node-llama-cpp", "piscina"]

/** Stands in the bundled text for the way from an output file to the root of `dist-cli/` until the layout is known. */
const toRoot = "__WRIT_BUNDLE_ROOT__"

const root = dirname(import.meta.dirname)
const source = join(root, "src")
const library = join(root, "dist")
const bundle = join(root, "dist-cli")
const stamp = join(library, ".build")

const starter = `#!/usr/bin/env node
import * as module from "node:module"
const [major, minor] = process.versions.node.split(".").map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(\`writ needs Node 22.19 or newer; this is \${process.version}\`)
  process.exit(2)
}
module.enableCompileCache()
await import("../dist-cli/cli.js")
`

/** Changes whenever anything the output depends on changes. */
const fingerprint = (): string => {
  const hash = createHash("sha256")
  const inputs = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json", "scripts/build.ts"]
  for (const file of [...inputs, ...globSync("src/**/*.ts", { cwd: root }).sort()]) {
    hash
      .update(file)
      .update("\0")
      .update(readFileSync(join(root, file)))
      .update("\0")
  }
  return hash.digest("hex")
}

const isCurrent = (wanted: string): boolean =>
  existsSync(stamp) && readFileSync(stamp, "utf8") === wanted && (!hasCommand() || existsSync(join(bundle, "cli.js")))

const hasCommand = (): boolean => existsSync(join(source, "cli.ts"))

const buildLibrary = (): void => {
  const tsc = fileURLToPath(import.meta.resolve("typescript/package.json"))
  const { status } = spawnSync(process.execPath, [join(dirname(tsc), "bin/tsc"), "-p", "tsconfig.build.json"], {
    cwd: root,
    stdio: "inherit"
  })
  if (status !== 0) throw new Error(`tsc ended with ${status}`)
}

/** Gives each source file its own `import.meta.url` back after many have become one. */
const ownPlace: Plugin = {
  name: "own-place",
  setup: (build) => {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (!path.startsWith(source)) return undefined
      const text = readFileSync(path, "utf8")
      if (/\bimport\.meta\.(?:dirname|filename)\b/.test(text)) {
        return { errors: [{ text: "the bundle supports import.meta.url only", location: { file: path } }] }
      }
      const place = relative(source, path).replaceAll("\\", "/").replace(/\.ts$/, ".js")
      return {
        contents: text.replaceAll("import.meta.url", `new URL("${toRoot}/${place}", import.meta.url).href`),
        loader: "ts"
      }
    })
  }
}

/** CommonJS dependencies ask for Node's own modules by `require`, which a module does not have. */
const requireOf =
  'import{createRequire as __createRequire}from"node:module";const require=__createRequire(import.meta.url);'

const buildCommand = async (): Promise<number> => {
  const present = entries.filter((entry) => existsSync(join(source, `${entry}.ts`)))
  for (const entry of entries)
    if (!present.includes(entry)) console.log(`build: src/${entry}.ts is not there, left out`)
  if (present.length === 0) return 0
  const { outputFiles, metafile } = await build({
    entryPoints: Object.fromEntries(present.map((entry) => [entry, join(source, `${entry}.ts`)])),
    outdir: bundle,
    chunkNames: "chunks/[name]-[hash]",
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    platform: "node",
    target: "node22",
    external,
    plugins: [ownPlace],
    legalComments: "none",
    metafile: true,
    absWorkingDir: root,
    logLevel: "warning",
    write: false
  })
  for (const { path, text } of outputFiles) {
    const up = relative(dirname(path), bundle).replaceAll("\\", "/") || "."
    const code = text.replace(/^#!.*\n/, "").replaceAll(toRoot, up)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, /\btypeof require\b/.test(code) ? requireOf + code : code)
  }
  writeFileSync(join(bundle, "THIRD-PARTY-LICENSES.txt"), licences(Object.keys(metafile.inputs)))
  return outputFiles.length
}

/** The licence texts of the packages whose code is in the bundle; most of them ask to travel with it. */
const licences = (inputs: ReadonlyArray<string>): string => {
  const packages = new Set<string>()
  for (const input of inputs) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]
    if (folder !== undefined) packages.add(folder)
  }
  return [...packages]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))
      const file = globSync("{LICENSE,LICENCE,license}*", { cwd: join(root, folder) }).sort()[0]
      const text = file === undefined ? "" : readFileSync(join(root, folder, file), "utf8").trim()
      return `${name} ${version} (${license})\n\n${text}\n`
    })
    .join(`\n${"-".repeat(80)}\n\n`)
}

const main = async (): Promise<void> => {
  const wanted = fingerprint()
  // npm runs `prepare` again before the first `npx writ` in a checkout, and the tests begin with a build.
  if (isCurrent(wanted) && !process.argv.includes("--force"))
    return console.log("build: dist/ and dist-cli/ are current")
  const started = performance.now()
  rmSync(library, { recursive: true, force: true })
  rmSync(bundle, { recursive: true, force: true })
  buildLibrary()
  const files = await buildCommand()
  if (hasCommand()) {
    writeFileSync(join(library, "cli.js"), starter)
    chmodSync(join(library, "cli.js"), 0o755)
  }
  writeFileSync(stamp, wanted)
  console.log(`build: dist/ and dist-cli/ (${files} files) in ${Math.round(performance.now() - started)} ms`)
}

await main()
