/**
 * Runs one program about a conversation: no shell, a cleared environment, bounds on time and output. It is ended with all it
 * started when its time is up or it has ended by itself. Says how it went; what that means is somebody else's.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Stream from "effect/Stream"

/** Milliseconds a program may take. */
export const mostMillis = 30_000

/** Bytes it may write to each of its streams. */
export const mostBytes = 1024 * 1024

/** What it gets of the environment without being asked for: where programs are, how text is written. No secret is in these. */
export const allowed = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SystemRoot", "PATHEXT"]

export interface Program {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  /** All there is in its environment. */
  readonly env: Readonly<Record<string, string>>
  readonly input: string
  readonly millis: number
}

export type Ran =
  | { readonly _tag: "Exit"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly _tag: "Signal"; readonly signal: string }
  | { readonly _tag: "Timeout" }
  | { readonly _tag: "Over"; readonly stream: "standard output" | "standard error" }
  | { readonly _tag: "NotStarted"; readonly reason: string }

/** Time for what is already written to arrive after the end. */
const drainMillis = 1_000

class Collected {
  readonly #chunks: Array<Uint8Array> = []
  #bytes = 0

  /** Whether that was still within bounds. */
  add(chunk: Uint8Array): boolean {
    this.#bytes += chunk.byteLength
    if (this.#bytes <= mostBytes) this.#chunks.push(chunk)
    return this.#bytes <= mostBytes
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString("utf8")
  }
}

const signalOf = (error: PlatformError): string =>
  /'(SIG[A-Z0-9]+)'/.exec(String(error.reason.cause ?? error))?.[1] ?? "a signal"

const startFault = (error: PlatformError): Ran => ({
  _tag: "NotStarted",
  reason: error.reason._tag === "NotFound" ? "there is no such program" : error.message
})

const watched = Effect.fnUntraced(function* (spawner: ChildProcessSpawner["Service"], program: Program) {
  const { args, command, cwd, env, input } = program
  const handle = yield* spawner.spawn(
    ChildProcess.make(command, [...args], { cwd, env, extendEnv: false, killSignal: "SIGKILL" })
  )
  // A program need not read what it is told, and may be gone before it could.
  yield* Effect.forkScoped(Effect.ignore(Stream.run(Stream.make(Buffer.from(input)), handle.stdin)))
  const over = yield* Deferred.make<Ran>()
  const [stdout, stderr] = [new Collected(), new Collected()]
  const listen = (from: typeof handle.stdout, into: Collected, stream: "standard output" | "standard error") =>
    Effect.forkScoped(
      Effect.ignore(
        Stream.runForEach(from, (chunk) =>
          into.add(chunk) ? Effect.void : Effect.andThen(Deferred.succeed(over, { _tag: "Over", stream }), Effect.never)
        )
      )
    )
  const heard = [
    yield* listen(handle.stdout, stdout, "standard output"),
    yield* listen(handle.stderr, stderr, "standard error")
  ]
  const exit = Effect.match(handle.exitCode, {
    onFailure: (error): Ran => ({ _tag: "Signal", signal: signalOf(error) }),
    onSuccess: (code): Ran => ({ _tag: "Exit", code, stdout: "", stderr: "" })
  })
  const end = yield* Effect.raceFirst(exit, Deferred.await(over))
  if (end._tag !== "Exit") return end
  // What it started may hold its output open for ever: what has not arrived by now does not belong to it.
  yield* Effect.timeoutOption(Effect.raceFirst(Fiber.awaitAll(heard), Deferred.await(over)), drainMillis)
  if (yield* Deferred.isDone(over)) return yield* Deferred.await(over)
  return { ...end, stdout: stdout.text, stderr: stderr.text }
})

export const run = (spawner: ChildProcessSpawner["Service"], program: Program): Effect.Effect<Ran> =>
  watched(spawner, program).pipe(
    Effect.scoped,
    Effect.timeoutOption(program.millis),
    Effect.map(Option.getOrElse((): Ran => ({ _tag: "Timeout" }))),
    Effect.catch((error) => Effect.succeed(startFault(error)))
  )
