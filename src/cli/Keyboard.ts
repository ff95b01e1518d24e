/**
 * The keyboard of a terminal while a program works that is no editor: what is typed is not shown, goes nowhere, and answers
 * no question that is asked after it. Ctrl-C, Ctrl-\ and Ctrl-Z stay what they are. Without a terminal it does nothing.
 */
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { setImmediate } from "node:timers"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Keyboard {
  /**
   * Nothing typed is shown until the scope closes, but for lines that are asked for. Not in the background, nor on systems
   * that do not say who is (all but Linux and Windows): there what is typed is shown, and still answers nothing later.
   */
  readonly quiet: Effect.Effect<void, never, Scope.Scope>
  /**
   * One line, all of it typed after `show` has printed the question, which it does again when the program goes on after it was
   * stopped; `undefined`: there will be none.
   */
  readonly line: (show: () => void) => Effect.Effect<string | undefined>
}

/** `pgrp` and `tpgid` of proc_pid_stat(5). The program's name may hold anything, and stands before the last parenthesis. */
export const groupsIn = (stat: string): readonly [own: number, foreground: number] => {
  const [, , own, , , foreground] = stat
    .slice(stat.lastIndexOf(")") + 1)
    .trim()
    .split(/\s+/)
  return [Number(own), Number(foreground)]
}

/** A program in the background that touches the terminal is stopped by the system. Where nobody can tell, it is one. */
const inForeground = (): boolean => {
  if (process.platform === "win32") return true
  if (process.platform !== "linux") return false
  const [own, foreground] = groupsIn(readFileSync("/proc/self/stat", "utf8"))
  // None at all: this is not the terminal that could stop anybody.
  return foreground === own || foreground <= 0
}

/** Rounds of the event loop without a key until everything typed so far has been seen, and how many it may take. */
const quietRounds = 3
const mostRounds = 2_000

class Keys implements Keyboard {
  /** Somebody wants nothing shown. */
  #quiet = false
  /** The terminal sends keys one by one, and they are read. */
  #held = false
  /** A question is open: the terminal is as it was found, and edits the line. */
  #asking = false
  /** Rounds since the last key. */
  #still = 0

  readonly quiet = Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => {
        if (!process.stdin.isTTY) return
        this.#quiet = true
        process.stdin.on("error", this.#lost)
        process.on("SIGCONT", this.#continued)
        this.#takeInFront()
      }),
      () =>
        Effect.sync(() => {
          if (!this.#quiet) return
          this.#quiet = false
          process.off("SIGCONT", this.#continued)
          this.#release()
          process.stdin.off("error", this.#lost)
        })
    )
  )

  readonly line = (show: () => void): Effect.Effect<string | undefined> =>
    Effect.callback<string | undefined>((resume) => {
      let close = () => {}
      let over = false
      const done = (answer: string | undefined) => {
        if (over) return
        over = true
        close()
        process.off("SIGCONT", show)
        this.#asking = false
        this.#release()
        if (this.#quiet) this.#takeInFront()
        resume(Effect.succeed(answer))
      }
      this.#drain(() => {
        if (over) return
        this.#asking = true
        this.#cooked()
        // The shell has said something meanwhile. In the background too: whoever moves it to the front may send no signal.
        process.on("SIGCONT", show)
        show()
        close = this.#read(done)
      })
      return Effect.sync(() => done(undefined))
    })

  /** What was typed so far is read, and is nobody's. A line that is not whole yet can be read key by key only. */
  #drain(then: () => void): void {
    if (!process.stdin.isTTY) {
      then()
      return
    }
    this.#take()
    this.#still = 0
    let rounds = 0
    const round = () => {
      this.#still += 1
      rounds += 1
      if (this.#still > quietRounds || rounds > mostRounds) then()
      else setImmediate(round)
    }
    setImmediate(round)
  }

  /** Not in raw mode, so the line can be edited and Ctrl-C stays a signal. */
  #read(done: (answer: string | undefined) => void): () => void {
    if (process.stdin.readableEnded) {
      done(undefined)
      return () => {}
    }
    const lines = createInterface({ input: process.stdin, terminal: false })
    lines.once("line", done)
    lines.once("close", () => done(undefined))
    return () => lines.close()
  }

  #takeInFront(): void {
    if (inForeground()) this.#take()
  }

  #take(): void {
    if (this.#held) return
    this.#held = true
    const { stdin } = process
    stdin.setRawMode(true)
    stdin.on("data", this.#typed)
    stdin.resume()
  }

  /** The terminal as it was found; it may be read on. */
  #cooked(): void {
    if (!this.#held) return
    this.#held = false
    process.stdin.off("data", this.#typed)
    process.stdin.setRawMode(false)
  }

  #release(): void {
    this.#cooked()
    if (process.stdin.isTTY) process.stdin.pause()
  }

  /** Keys that mean a signal, which the terminal does not send while keys are read. */
  readonly #typed = (keys: Buffer | string): void => {
    this.#still = 0
    for (const key of String(keys)) {
      // Whoever listens is told before the next key.
      if (key === "\u0003" && !process.emit("SIGINT", "SIGINT")) process.kill(process.pid, "SIGINT")
      if (key === "\u001c") this.#leaveTo("SIGQUIT", process.pid)
      // All of this job, as the terminal would have it: the shell waits for whoever started this program.
      if (key === "\u001a") this.#leaveTo("SIGTSTP", 0)
    }
  }

  #leaveTo(signal: "SIGQUIT" | "SIGTSTP", whom: number): void {
    if (process.platform === "win32") return
    this.#release()
    process.kill(whom, signal)
    // Where there is no shell to stop for, nothing happens.
    setImmediate(this.#continued)
  }

  /** The shell has changed the terminal meanwhile, and may have kept it. */
  readonly #continued = (): void => {
    if (!this.#quiet || this.#asking) return
    const { stdin } = process
    if (!inForeground()) {
      stdin.off("data", this.#typed)
      stdin.pause()
      this.#held = false
      return
    }
    this.#release()
    this.#take()
  }

  /** A terminal that is gone says so to everything. */
  readonly #lost = (): void => {
    process.stdin.off("data", this.#typed)
    process.stdin.pause()
  }
}

export const make = (): Keyboard => new Keys()
