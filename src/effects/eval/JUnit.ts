/**
 * A report as JUnit XML, which CI systems read: a failure is the candidate's, an error the suite's or the environment's, what
 * was deferred is skipped.
 */
import type { DecidedCell } from "./Cells.ts"
import { cellsOf } from "./Cells.ts"
import type { Report } from "./Report.ts"

/** XML 1.0 has no way to write most control characters and no half pairs: they are shown by their code. */
const escape = (text: string): string =>
  text
    .replace(
      /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`
    )
    .replace(/[&<>"'\t\r\n]/g, (one) => `&#${one.charCodeAt(0)};`)

const element = { fail: "failure", malformed: "error", errored: "error", deferred: "skipped" } as const

const testCase = (suite: string, cell: DecidedCell): string => {
  const { class: kind, conversation, ordinal, outcome, reason = "" } = cell
  const open = `    <testcase classname="${escape(`${suite}.${cell.case}`)}" name="${escape(`${conversation} #${ordinal} ${kind}`)}"`
  if (outcome === "pass") return `${open}/>`
  return `${open}><${element[outcome]} type="${outcome}" message="${escape(reason)}"/></testcase>`
}

const counts = (cells: ReadonlyArray<DecidedCell>): string => {
  const count = (name: string) => cells.filter(({ outcome }) => outcome !== "pass" && element[outcome] === name).length
  return `tests="${cells.length}" failures="${count("failure")}" errors="${count("error")}" skipped="${count("skipped")}"`
}

export const junit = (report: Report): string => {
  const cells = cellsOf(report)
  const names = [...new Set(cells.map((one) => one.case))]
  const byCase = Map.groupBy(cells, (one) => one.case)
  const when = report.timestamp === "" ? "" : ` timestamp="${escape(report.timestamp)}"`
  const suites = names.map((name) => {
    const own = byCase.get(name)!
    const body = own.map((cell) => testCase(report.suite, cell)).join("\n")
    return `  <testsuite name="${escape(name)}" ${counts(own)}${when}>\n${body}\n  </testsuite>`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="${escape(report.suite)}" ${counts(cells)}>\n${suites.join("\n")}\n</testsuites>\n`
}
