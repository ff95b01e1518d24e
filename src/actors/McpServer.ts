/** What is known of an MCP server before it is reached: its name here, how it is reached, how long and how much it may talk. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

export interface StdioServer {
  readonly _tag: "Stdio"
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd?: string
  /** Variables it is given besides `plainVariables`. Nothing else of this process's environment reaches it. */
  readonly env?: Readonly<Record<string, string>>
}

export interface HttpServer {
  readonly _tag: "Http"
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface McpServer {
  /** 1 to 24 letters, digits, hyphens and single underscores: the first part of its tools' names. */
  readonly name: string
  readonly transport: StdioServer | HttpServer
}

export interface McpLimits {
  /** Until it is ready for calls. */
  readonly startMillis: number
  /** For its whole list of tools. */
  readonly listMillis: number
  /** Until its own stream over HTTP is open, where it has one. Whoever connects goes on without. */
  readonly hearMillis: number
  /** For each step of going away: closing its input, asking it to end, ending it. */
  readonly exitMillis: number
  /** After so long the list is read again before a call, announced change or not. */
  readonly freshMillis: number
  readonly messageBytes: number
  readonly strayBytes: number
  readonly requests: number
  readonly tools: number
  /** How often a server that went away is started or reached again. */
  readonly restarts: number
}

export const standardLimits: McpLimits = {
  startMillis: 30_000,
  listMillis: 15_000,
  hearMillis: 1_000,
  exitMillis: 2_000,
  freshMillis: 60_000,
  messageBytes: 16 * 1024 * 1024,
  strayBytes: 16 * 1024 * 1024,
  requests: 256,
  tools: 512,
  restarts: 3
}

/** Variables every program needs, and that hold no secrets. */
export const plainVariables: ReadonlyArray<string> = [
  "PATH",
  "HOME",
  "LANG",
  "LC_ALL",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TMP",
  "SystemRoot",
  "PATHEXT"
]

/** A variable of this process; none where there is no such variable. */
export const variable = (name: string): Effect.Effect<Option.Option<string>> =>
  Effect.orElseSucceed(Config.option(Config.String(name)), () => Option.none<string>())

/** The whole environment of a server's process. */
export const environmentOf = (
  granted: Readonly<Record<string, string>> | undefined
): Effect.Effect<Readonly<Record<string, string>>> =>
  Effect.map(
    Effect.forEach(plainVariables, (name) => Effect.map(variable(name), (value) => [name, value] as const)),
    (found) => ({
      ...Object.fromEntries(found.flatMap(([name, value]) => (Option.isSome(value) ? [[name, value.value]] : []))),
      ...granted
    })
  )
