/**
 * One call of a tool that is a program: started without a shell, arguments as JSON on its standard input, the result on its
 * standard output. It is ended with all it started when the call ends, however it ends; nothing here has a deadline of its own.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { plain } from "../Execution.ts"
import { decode } from "../FileText.ts"
import { BadResult } from "../JsonResult.ts"
import { type Json, type JsonObject, parse } from "../JsonText.ts"
import type { OutputCheck } from "../mcp/McpOutput.ts"
import type { EffectClaim } from "../ToolCall.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"
import { keyVariable } from "./KeyVariable.ts"

/** What is started, with every path made absolute. */
export interface ToolProgram {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Where it runs; nothing for the workspace of the run. */
  readonly directory: string | undefined
  /** Names of variables it gets from here. */
  readonly env: ReadonlyArray<string>
  /** Variables it gets besides. */
  readonly granted: Readonly<Record<string, string>>
  readonly output: "json" | "text"
  readonly check: OutputCheck | undefined
  readonly maxOutputBytes: number
  /** What a failure that the program reports says about the world. */
  readonly failure: EffectClaim
  /** What is known of the world when it was ended in the middle. */
  readonly unfinished: EffectClaim
}

/** Time to go by itself after SIGTERM, and to write what is left after its end. */
const goMillis = 2_000
const drainMillis = 500

/** How much of standard error is kept: the end of it. */
const errorBytes = 4_096

/** "Try again later", of sysexits.h. */
const tryAgain = 75

/** Every program needs these, and they hold no secrets. */
const plainNames = process.platform === "win32" ? ["PATH", "SystemRoot", "PATHEXT"] : ["PATH"]

const environmentOf = ({ env: names, granted }: ToolProgram, key: string | undefined): Record<string, string> => {
  const host = process.env
  const given = [...plainNames, ...names].flatMap((name) =>
    host[name] === undefined ? [] : [[name, host[name]] as const]
  )
  return { ...Object.fromEntries(given), ...granted, ...(key === undefined ? {} : { [keyVariable]: key }) }
}

/** What a stream brought so far. */
class Kept {
  readonly #most: number
  #chunks: Array<Uint8Array> = []
  bytes = 0

  constructor(most: number) {
    this.#most = most
  }

  /** More came than may be kept. */
  get isOver(): boolean {
    return this.bytes > this.#most
  }

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.bytes += chunk.byteLength
  }

  /** The same, where only the end is of interest. */
  addToEnd(chunk: Uint8Array): void {
    const last = Buffer.concat([...this.#chunks, chunk]).subarray(-this.#most)
    this.#chunks = [last]
    this.bytes = last.byteLength
  }

  get all(): Uint8Array {
    return Buffer.concat(this.#chunks)
  }
}

/** How it ended: by itself, by a signal, or because it would not stop talking. */
type End =
  | { readonly _tag: "Exit"; readonly code: number }
  | { readonly _tag: "Signal"; readonly signal: string }
  | { readonly _tag: "Over" }

const signalOf = (error: PlatformError): string =>
  /'(SIG[A-Z0-9]+)'/.exec(String(error.reason.cause ?? error))?.[1] ?? "a signal"

const cannotStart = (error: PlatformError): ToolError => {
  const reason = error.reason._tag === "NotFound" ? "its program or directory is not there" : plain(error.message)
  return new ToolError({ kind: "execution_failed", message: `it cannot be started: ${reason}` })
}

const started = Effect.fnUntraced(function* (program: ToolProgram) {
  const { settings } = yield* ToolContext
  const cwd = program.directory ?? settings.workspace
  if (cwd === undefined) {
    return yield* new ToolError({ kind: "refused", message: "it works in the workspace, and this run has none" })
  }
  const command = ChildProcess.make(program.command, [...program.args], {
    cwd,
    env: environmentOf(program, settings.idempotencyKey),
    extendEnv: false,
    forceKillAfter: goMillis
  })
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  return yield* Effect.mapError(spawner.spawn(command), cannotStart)
})

/** Runs it to its end, in a scope that ends it. */
const conversation = Effect.fnUntraced(function* (program: ToolProgram, input: string) {
  const handle = yield* started(program)
  // A program need not read what it is told, and may be gone before it could.
  yield* Effect.forkScoped(Effect.ignore(Stream.run(Stream.make(Buffer.from(input)), handle.stdin)))
  const [output, errors] = [new Kept(program.maxOutputBytes), new Kept(errorBytes)]
  const over = yield* Deferred.make<End>()
  const listening = Stream.runForEach(handle.stdout, (chunk) => {
    output.add(chunk)
    return output.isOver ? Effect.andThen(Deferred.succeed(over, { _tag: "Over" }), Effect.never) : Effect.void
  })
  const heard = yield* Effect.forkScoped(Effect.ignore(listening))
  const complained = yield* Effect.forkScoped(
    Effect.ignore(Stream.runForEach(handle.stderr, (chunk) => Effect.sync(() => errors.addToEnd(chunk))))
  )
  const exit = Effect.match(handle.exitCode, {
    onFailure: (error): End => ({ _tag: "Signal", signal: signalOf(error) }),
    onSuccess: (code): End => ({ _tag: "Exit", code })
  })
  const end = yield* Effect.raceFirst(exit, Deferred.await(over))
  // What it started may hold its output open for ever: what is not there by now does not belong to it.
  if (end._tag !== "Over") {
    const rest = Effect.andThen(Fiber.await(heard), Fiber.await(complained))
    yield* Effect.timeoutOption(rest, drainMillis)
  }
  return { end: output.isOver ? ({ _tag: "Over" } as const) : end, output: output.all, errors: errors.all }
})

/** The last words of a program, as one line. */
const wordsOf = (errors: Uint8Array): string => {
  const text = new TextDecoder().decode(errors)
  const lines = text
    .replace(/\u001b\[[0-9;]*[A-Za-z]/g, "")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "")
    .trim()
  return lines === "" ? "it did not say why" : plain(lines.split("\n").slice(-5).join(" · "))
}

const failureOf = (
  program: ToolProgram,
  end: Exclude<End, { readonly _tag: "Over" }>,
  errors: Uint8Array
): ToolError => {
  const words = wordsOf(errors)
  if (end._tag === "Signal") {
    return new ToolError({
      kind: "execution_failed",
      message: `it was ended by ${end.signal}: ${words}`,
      effect: program.unfinished
    })
  }
  const kind = end.code === tryAgain ? "unavailable" : "execution_failed"
  return new ToolError({ kind, message: `it ended with exit code ${end.code}: ${words}`, effect: program.failure })
}

const bad = (reason: string): Effect.Effect<never> => Effect.die(new BadResult(reason))

const resultOf = ({ check, output }: ToolProgram, bytes: Uint8Array): Effect.Effect<Json> => {
  const text = decode(bytes)
  if (typeof text !== "string") return bad(`its output is no text: ${text.reason}`)
  if (output === "text") return Effect.succeed(text)
  if (text.trim() === "")
    return bad('its output is empty; a tool without a result writes null, or says "output": "text"')
  const read = parse(text.trim(), { maxDepth: 100 })
  if (Result.isFailure(read)) {
    return bad(`its output is not JSON: ${read.failure.reason} (at character ${read.failure.position})`)
  }
  const fault = check?.(read.success)
  return fault === undefined ? Effect.succeed(read.success) : bad(`its output is not what its file promises: ${fault}`)
}

/** The result of one call. Fails as the program does; dies with `BadResult` where it succeeded and said nothing usable. */
export const run = Effect.fnUntraced(function* (
  program: ToolProgram,
  args: JsonObject
): Effect.fn.Return<Json, ToolError, ToolContext | ChildProcessSpawner.ChildProcessSpawner> {
  const { end, errors, output } = yield* Effect.scoped(conversation(program, `${JSON.stringify(args)}\n`))
  if (end._tag === "Over") {
    const message = `it wrote more than ${program.maxOutputBytes} bytes and was ended`
    return yield* new ToolError({ kind: "execution_failed", message, effect: program.unfinished })
  }
  if (end._tag === "Signal" || end.code !== 0) return yield* failureOf(program, end, errors)
  return yield* resultOf(program, output)
})
