/**
 * `npm test`: build, types, lint, then the tests, each streamed as it runs. Stops at the first stage that fails and ends
 * with its exit code. The last line is always `N passed, N failed`: the tests' own counts, where a failed stage before
 * them, or a test file that could not run, counts as one failure. Arguments go to vitest.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"

const root = dirname(import.meta.dirname)
const bin = join(root, "node_modules", ".bin")

const run = (command: string, ...args: ReadonlyArray<string>): number => {
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: {
      ...process.env,
      WRIT_TEST_COMMAND: join(root, "dist/cli.js"),
      PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`
    },
    shell: process.platform === "win32"
  })
  if (error !== undefined) console.error(`${command}: ${error.message}`)
  return status ?? 1
}

/** The part of vitest's JSON report that is read here. */
interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly assertionResults: ReadonlyArray<{ readonly status: string }>
  }>
}

interface Verdict {
  readonly passed: number
  readonly failed: number
  readonly code: number
}

const tests = (args: ReadonlyArray<string>): Verdict => {
  const folder = mkdtempSync(join(tmpdir(), "writ-test-"))
  try {
    const file = join(folder, "report.json")
    const code = run("vitest", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${file}`, ...args)
    const report = read(file)
    return report === undefined ? { passed: 0, failed: 1, code: code || 1 } : judge(report, code)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const judge = (report: Report, code: number): Verdict => {
  const unrunnable = report.testResults.filter(
    (one) => one.status === "failed" && !one.assertionResults.some((test) => test.status === "failed")
  )
  for (const { name } of unrunnable) console.error(`could not run ${name}`)
  if (report.numPendingTests > 0) console.log(`${report.numPendingTests} skipped`)
  const failed = report.numFailedTests + unrunnable.length
  // An error outside any test (an unhandled rejection) fails the run although no test did, and the other way round.
  const bad = failed > 0 || code !== 0
  return { passed: report.numPassedTests, failed: bad ? Math.max(failed, 1) : 0, code: bad ? code || 1 : 0 }
}

const read = (file: string): Report | undefined => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return undefined
  }
}

const stages: ReadonlyArray<readonly [name: string, ...command: [string, ...Array<string>]]> = [
  ["build", "node", "scripts/build.ts"],
  ["types", "tsc", "--noEmit", "-p", "tsconfig.json"],
  ["effects", "effect-tsgo", "diagnostics", "--project", "tsconfig.json", "--severity", "error,warning", "--strict"],
  ["lint", "biome", "check", "--error-on-warnings", "."]
]

const main = (args: ReadonlyArray<string>): Verdict => {
  for (const [name, command, ...rest] of stages) {
    console.log(`== ${name}`)
    const code = run(command, ...rest)
    if (code !== 0) {
      console.error(`== ${name} failed with exit code ${code}`)
      return { passed: 0, failed: 1, code }
    }
  }
  console.log("== tests")
  return tests(args)
}

const { passed, failed, code } = main(process.argv.slice(2))
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = code
