/** A command in a terminal of its own, by the `script` of util-linux; what is sent to it, and what then stands on it. */
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import * as Effect from "effect/Effect"

export const hasTerminals: boolean = existsSync("/usr/bin/script")

/** Runs to the end; what was sent to the terminal, line ends as they were written. */
export const onTerminal = (
  command: string,
  { cwd, columns = 100 }: { readonly cwd: string; readonly columns?: number }
): Effect.Effect<string> =>
  Effect.promise(
    () =>
      new Promise((resolve) => {
        const { NO_COLOR: _, ...env } = process.env
        const child = spawn("/usr/bin/script", ["-qfec", `stty cols ${columns}; ${command}`, "/dev/null"], {
          cwd,
          env: { ...env, SHELL: "/bin/sh", TERM: "xterm" }
        })
        let sent = ""
        child.stdout.setEncoding("utf8").on("data", (text) => (sent += text))
        child.on("close", () => resolve(sent.replaceAll("\r\n", "\n")))
      })
  )

const erase = "\r\u001b[2K"

/** What stands there in the end: lines without what was taken away again, and without colours. */
export const standing = (sent: string): ReadonlyArray<string> =>
  sent
    .split("\n")
    .map((line) => line.slice(line.lastIndexOf(erase) < 0 ? 0 : line.lastIndexOf(erase) + erase.length))
    .map((line) => line.replaceAll(/\u001b\[\d*m/g, ""))
