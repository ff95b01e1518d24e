/** Preloaded into a process that is measured: at its end it says what it used, in the file that `WRIT_BENCH_USAGE` names. */
import { writeFileSync } from "node:fs"

process.on("exit", () => {
  const { maxRSS, systemCPUTime, userCPUTime } = process.resourceUsage()
  const usage = { cpuMillis: (systemCPUTime + userCPUTime) / 1000, megabytes: maxRSS / 1024 }
  writeFileSync(process.env["WRIT_BENCH_USAGE"]!, JSON.stringify(usage))
})
