/** Reads a trace that is being written, as it grows, up to its terminal event. Whoever waits may stop at any time. */

import { type FileHandle, open } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { terminalTypes } from "../../actors/TraceEvent.ts"
import { type Item, read, TraceReadError } from "./TraceReader.ts"

/** How long nothing is asked after there was nothing new, in milliseconds. */
export const pauseMillis = 100

const portionBytes = 256 * 1024

const failure = (path: string) => (cause: unknown) =>
  new TraceReadError({
    path,
    message: `${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    cause
  })

const isTerminal = (item: Item): boolean => item._tag === "Event" && terminalTypes.has(item.record.event_type)

/** What was written since the last time; waits until there is something. */
const next = (path: string, file: FileHandle) => {
  let position = 0
  const buffer = Buffer.alloc(portionBytes)
  const more = Effect.tryPromise({
    try: async () => {
      const { bytesRead } = await file.read(buffer, 0, portionBytes, position)
      if (bytesRead === 0 && (await file.stat()).size < position) throw new Error("it has become shorter")
      position += bytesRead
      // Copied: the lines of a portion are read before the next one, but nobody has to know.
      return Uint8Array.from(buffer.subarray(0, bytesRead))
    },
    catch: failure(path)
  })
  const wait: Effect.Effect<Uint8Array, TraceReadError> = Effect.flatMap(more, (bytes) =>
    bytes.length > 0 ? Effect.succeed(bytes) : Effect.andThen(Effect.sleep(pauseMillis), wait)
  )
  return wait
}

/** The items of a growing file, the terminal event last. Without one it goes on until it is interrupted. */
export const follow = (path: string): Stream.Stream<Item, TraceReadError> =>
  Stream.unwrap(
    Effect.map(
      Effect.acquireRelease(Effect.tryPromise({ try: () => open(path), catch: failure(path) }), (file) =>
        Effect.promise(() => file.close())
      ),
      (file) => Stream.takeUntil(read(Stream.fromEffectRepeat(next(path, file))), isTerminal)
    )
  )
