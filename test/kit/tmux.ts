/** A program in a terminal that is emulated by tmux: keys, pastes and window sizes go in, what stands on the screen comes out. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const program = "/usr/bin/tmux"

export const hasTmux: boolean = existsSync(program)

export interface Pane {
  /** Types text, key by key, without a line end. */
  readonly type: (text: string) => void
  /** Keys by tmux' names: `Enter`, `C-c`, `Up`. */
  readonly keys: (...names: ReadonlyArray<string>) => void
  /** A paste as terminals mark it, if the program asked for that. */
  readonly paste: (text: string) => void
  readonly resize: (columns: number) => void
  /** Lines that stand there, those that scrolled away first; without spaces and empty lines at the end. */
  readonly screen: () => ReadonlyArray<string>
  /** Everything the program wrote since the pane was opened. */
  readonly sent: () => string
  /** Waits until the screen, as one text, has this; or until the program has ended. */
  readonly until: (what: string | RegExp) => Effect.Effect<void>
  /** Waits for the program's end; its exit code. */
  readonly ended: Effect.Effect<number>
}

export interface PaneOptions {
  readonly cwd: string
  readonly columns?: number
  readonly rows?: number
  readonly env?: Readonly<Record<string, string>>
}

const pause = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 40)))

/** Starts the program; terminal and program go with the scope. */
export const pane = (
  command: ReadonlyArray<string>,
  { columns = 80, cwd, env = {}, rows = 60 }: PaneOptions
): Effect.Effect<Pane, never, Scope.Scope> =>
  Effect.gen(function* () {
    const home = mkdtempSync(join(tmpdir(), "writ-tmux-"))
    const log = join(home, "sent")
    const status = join(home, "status")
    const { NO_COLOR: _, FORCE_COLOR: __, TMUX: ___, ...inherited } = process.env
    const surroundings = { ...inherited, SHELL: "/bin/sh", LC_ALL: "C.UTF-8", TERM: "xterm-256color", ...env }
    const tmux = (args: ReadonlyArray<string>, input?: string): string =>
      execFileSync(program, ["-S", join(home, "socket"), "-f", "/dev/null", ...args], {
        cwd,
        env: surroundings,
        encoding: "utf8",
        stdio: ["pipe", "pipe", "pipe"],
        ...(input === undefined ? {} : { input })
      })
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const window = ["-x", String(columns), "-y", String(rows)]
        // The program waits for its first line, so that nothing it writes is missed.
        const started = ["/bin/sh", "-c", `read -r _; "$@"; echo $? > '${status}'`, "sh", ...command]
        tmux(["set", "-g", "remain-on-exit", "on", ";", "new-session", "-d", ...window, ...started])
        tmux(["pipe-pane", "-O", `cat > '${log}'`])
        tmux(["send-keys", "Enter"])
      }),
      () =>
        Effect.sync(() => {
          tmux(["kill-server"])
          rmSync(home, { recursive: true, force: true })
        })
    )
    const screen = () => tmux(["capture-pane", "-p", "-S", "-1000"]).trimEnd().split("\n")
    // Not by what tmux says: a pane that is copied to a file may never be told that its program has ended.
    const code = () => (existsSync(status) ? readFileSync(status, "utf8").trim() : "")
    const has = (what: string | RegExp) => {
      const text = screen().join("\n")
      return typeof what === "string" ? text.includes(what) : what.test(text)
    }
    const until = (what: string | RegExp): Effect.Effect<void> =>
      Effect.suspend(() => (has(what) || code() !== "" ? Effect.void : Effect.andThen(pause, until(what))))
    const ended: Effect.Effect<number> = Effect.suspend(() =>
      code() === "" ? Effect.andThen(pause, ended) : Effect.succeed(Number(code()))
    )
    return {
      type: (text) => void tmux(["send-keys", "-l", text]),
      keys: (...names) => void tmux(["send-keys", ...names]),
      paste: (text) => {
        tmux(["load-buffer", "-"], text)
        tmux(["paste-buffer", "-p", "-r"])
      },
      resize: (to) => void tmux(["resize-window", "-x", String(to), "-y", String(rows)]),
      screen,
      sent: () => (existsSync(log) ? readFileSync(log, "utf8") : ""),
      until,
      ended
    }
  })
