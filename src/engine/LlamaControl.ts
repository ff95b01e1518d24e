/**
 * The stop flag and busy count shared by the thread that decodes and the thread that owns it. A process that tears the
 * decoding thread down while native code runs is aborted by the runtime (signal 6, exit code 134); so whoever wants to
 * exit raises `stop` and waits until `busy` is 0, and every native call counts itself busy *before* it looks at `stop`.
 */

const STOP = 0
const BUSY = 1

/** Thrown, and never shown, where work ends because somebody asked for it. */
export class Stopped extends Error {
  constructor() {
    super("stopped")
  }
}

/** The side of the thread that runs native code. */
export interface Control {
  readonly stopped: () => boolean
  /** Counts one native call as busy; throws `Stopped` instead once the flag is up. Each is followed by one `leave`. */
  readonly enter: () => void
  readonly leave: () => void
  /** Runs one native call between `enter` and `leave`. */
  readonly native: <A>(run: () => Promise<A>) => Promise<A>
  /** Closes what is open, also when the flag is up. Counted and waited for at most `limitMillis`. */
  readonly closing: (limitMillis: number, run: () => Promise<unknown>) => Promise<void>
  /** Aborted when the flag goes up. */
  readonly signal: AbortSignal
  readonly stop: () => void
}

export const makeBuffer = (): SharedArrayBuffer => new SharedArrayBuffer(8)

export const makeControl = (buffer: SharedArrayBuffer = makeBuffer()): Control => {
  const cells = new Int32Array(buffer)
  const abort = new AbortController()
  const stopped = () => Atomics.load(cells, STOP) !== 0
  const leave = () => {
    Atomics.sub(cells, BUSY, 1)
    // Whoever waits has raised the flag first: without it there is nobody to wake, and this runs once per token.
    if (stopped()) Atomics.notify(cells, BUSY)
  }
  const enter = () => {
    Atomics.add(cells, BUSY, 1)
    if (!stopped()) return
    leave()
    throw new Stopped()
  }
  const raised = Atomics.waitAsync(cells, STOP, 0)
  if (raised.async) void raised.value.then(() => abort.abort(new Stopped()))
  else abort.abort(new Stopped())
  return {
    stopped,
    signal: abort.signal,
    stop: () => raiseStop(buffer),
    enter,
    leave,
    native: async (run) => {
      enter()
      try {
        return await run()
      } finally {
        leave()
      }
    },
    closing: async (limitMillis, run) => {
      Atomics.add(cells, BUSY, 1)
      try {
        const limit = new AbortController()
        const late = AbortSignal.any([limit.signal, AbortSignal.timeout(limitMillis)])
        await Promise.race([run(), new Promise<void>((resolve) => late.addEventListener("abort", () => resolve()))])
        limit.abort()
      } finally {
        leave()
      }
    }
  }
}

/** Asks the other side to stop at the next boundary. */
export const raiseStop = (buffer: SharedArrayBuffer): void => {
  const cells = new Int32Array(buffer)
  Atomics.store(cells, STOP, 1)
  Atomics.notify(cells, STOP)
}

/** True while native code runs on the other side. */
export const isBusy = (buffer: SharedArrayBuffer): boolean => Atomics.load(new Int32Array(buffer), BUSY) > 0

/** Blocks this thread until the other side is idle, at most `limitMillis`; for exit hooks, where nothing can be awaited. */
export const waitIdle = (buffer: SharedArrayBuffer, limitMillis: number): boolean => {
  const cells = new Int32Array(buffer)
  const end = performance.now() + limitMillis
  for (;;) {
    const busy = Atomics.load(cells, BUSY)
    if (busy <= 0) return true
    const left = end - performance.now()
    if (left <= 0) return false
    Atomics.wait(cells, BUSY, busy, Math.min(left, 1000))
  }
}
