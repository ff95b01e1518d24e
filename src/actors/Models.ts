/**
 * Owns several models of which only some are loaded at a time: opens one when it is asked for, and closes the ones that were
 * not used for longest, and that nobody has, to make room. Whoever has a model keeps it. What a name means, and how a model
 * is opened, is said by whoever makes it.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { EngineError } from "../engine/EngineError.ts"
import type { Model } from "../engine/Model.ts"

export interface ModelsOptions {
  /** Opens a model into the scope. */
  readonly open: (name: string) => Effect.Effect<Model["Service"], EngineError, Scope.Scope>
  /** What a model takes of `memoryBytes`, asked before it is opened. Without it the budget is not looked at. */
  readonly bytes?: (name: string) => Effect.Effect<number, EngineError>
  /** How many may be loaded. Default 2. */
  readonly loaded?: number
  /** Bytes all that are loaded may take together. Default: no limit. */
  readonly memoryBytes?: number
  /** Seconds to wait while all that are loaded are in use. Default 60. */
  readonly waitSeconds?: number
  /**
   * Seconds after which somebody who waits for another model is no longer overtaken by those who want one that is loaded.
   * Default 10: exchanging models costs more than a request.
   */
  readonly patienceSeconds?: number
}

export interface LoadedModel {
  readonly name: string
  /** How many have it now. One that is being opened counts those who wait for that. */
  readonly users: number
  readonly bytes: number
  readonly ready: boolean
}

export class Models extends Context.Service<
  Models,
  {
    /** The model, for the scope. Opens it if need be; waits while there is no room; fails `no_session` when that takes too long. */
    readonly use: (name: string) => Effect.Effect<Model["Service"], EngineError, Scope.Scope>
    /** Closes it as soon as nobody has it, so that the next one who asks gets a fresh one: for an engine that is lost. */
    readonly drop: (name: string) => Effect.Effect<void>
    /** What is loaded, or about to be; the least recently used first. */
    readonly loaded: Effect.Effect<ReadonlyArray<LoadedModel>>
  }
>()("effect-writ/actors/Models") {
  static readonly layer = (options: ModelsOptions): Layer.Layer<Models> => Layer.effect(Models, make(options))
}

interface Slot {
  readonly name: string
  readonly bytes: number
  readonly scope: Scope.Closeable
  readonly ready: Deferred.Deferred<Model["Service"], EngineError>
  users: number
  opened: boolean
  /** To be closed when nobody has it; nobody else gets it. */
  dropped: boolean
  /** About to be gone. */
  closing: boolean
}

interface Waiter {
  readonly name: string
  readonly since: number
  turn: Deferred.Deferred<void>
}

/** `Wait`: there is no room now. `Refused`: there never will be. */
type Claim =
  | { readonly _tag: "Claimed"; readonly slot: Slot; readonly closing: ReadonlyArray<Slot>; readonly fresh: boolean }
  | { readonly _tag: "Wait" }
  | { readonly _tag: "Refused"; readonly error: EngineError }

const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`

const closed = (name: string): EngineError =>
  new EngineError({ reason: "lost", message: `${name} is gone: the keeper of models was closed.` })

class Keeper {
  readonly #options: Required<Pick<ModelsOptions, "loaded" | "memoryBytes" | "waitSeconds" | "patienceSeconds">>
  readonly #home: Scope.Scope
  readonly #open: ModelsOptions["open"]
  readonly #bytes: NonNullable<ModelsOptions["bytes"]>
  /** By name; the least recently used first. */
  readonly #slots = new Map<string, Slot>()
  /** On their way out to make room, and under no name any more. */
  readonly #leaving = new Set<Slot>()
  readonly #waiting: Array<Waiter> = []
  #over = false

  constructor(options: ModelsOptions, home: Scope.Scope) {
    const { bytes = () => Effect.succeed(0), open, ...limits } = options
    this.#options = { loaded: 2, memoryBytes: Infinity, waitSeconds: 60, patienceSeconds: 10, ...limits }
    this.#home = home
    this.#open = open
    this.#bytes = bytes
  }

  readonly loaded: Effect.Effect<ReadonlyArray<LoadedModel>> = Effect.sync(() =>
    [...this.#slots.values()].map(({ bytes, name, opened, users }) => ({ name, users, bytes, ready: opened }))
  )

  readonly use = (name: string): Effect.Effect<Model["Service"], EngineError, Scope.Scope> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen({ self: this }, function* () {
        const bytes = yield* restore(this.#bytes(name))
        const slot = yield* this.#claimed(name, bytes, restore)
        yield* Effect.addFinalizer(() => this.#release(slot))
        return yield* restore(Deferred.await(slot.ready))
      })
    )

  readonly drop = (name: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const slot = this.#slots.get(name)
      if (slot === undefined) return Effect.void
      slot.dropped = true
      // One that is being opened is closed when it is there.
      return slot.users > 0 || !slot.opened ? Effect.void : this.#close(slot)
    })

  /** A slot this caller counts as a user of. Waits for its turn. */
  readonly #claimed = Effect.fnUntraced(
    { self: this },
    function* (
      this: Keeper,
      name: string,
      bytes: number,
      restore: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>
    ) {
      const waiter: Waiter = { name, since: yield* Clock.currentTimeMillis, turn: Deferred.makeUnsafe() }
      for (;;) {
        const now = yield* Clock.currentTimeMillis
        const claim = this.#claim(waiter, bytes, now)
        if (claim._tag !== "Wait") this.#leave(waiter)
        if (claim._tag === "Refused") return yield* claim.error
        if (claim._tag === "Claimed") {
          if (claim.fresh)
            yield* Effect.forkIn(this.#load(claim.slot, claim.closing), this.#home, { startImmediately: true })
          return claim.slot
        }
        waiter.turn = Deferred.makeUnsafe()
        if (!this.#waiting.includes(waiter)) this.#waiting.push(waiter)
        yield* restore(this.#wait(waiter, waiter.since + this.#options.waitSeconds * 1000 - now))
      }
    }
  )

  /** Until it is its turn to look again. Whoever gives up has left the line. */
  #wait(waiter: Waiter, millis: number): Effect.Effect<void, EngineError> {
    return Deferred.await(waiter.turn).pipe(
      Effect.timeoutOrElse({ duration: Math.max(0, millis), orElse: () => Effect.fail(this.#tooLong(waiter.name)) }),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) return
          this.#leave(waiter)
          // It may have been told, or have stood in the way.
          this.#wake()
        })
      )
    )
  }

  #tooLong(name: string): EngineError {
    const names = [...this.#slots.keys()].join(", ")
    const message = `${name} could not be loaded: for ${this.#options.waitSeconds} s all models there is room for were in use (${names}). Try again later, or allow more.`
    return new EngineError({ reason: "no_session", message })
  }

  #leave(waiter: Waiter): void {
    const at = this.#waiting.indexOf(waiter)
    if (at >= 0) this.#waiting.splice(at, 1)
  }

  /** Everybody who waits looks again, in order. */
  #wake(): void {
    for (const waiter of [...this.#waiting]) Deferred.doneUnsafe(waiter.turn, Exit.void)
  }

  /** Decides what becomes of a request now, and takes what it gets. */
  #claim(waiter: Waiter, bytes: number, now: number): Claim {
    const { loaded, memoryBytes, patienceSeconds } = this.#options
    const { name } = waiter
    if (this.#over) return { _tag: "Refused", error: closed(name) }
    if (bytes > memoryBytes) {
      const message = `${name} needs about ${mib(bytes)}, and all models together may take ${mib(memoryBytes)}. Allow more, or take a smaller one.`
      return { _tag: "Refused", error: new EngineError({ reason: "not_enough_memory", message }) }
    }
    const [first] = this.#waiting
    const ahead = first !== undefined && first !== waiter && !this.#isBehind(first, waiter)
    const known = this.#slots.get(name)
    if (known !== undefined && !known.dropped) {
      if (ahead && now - first.since >= patienceSeconds * 1000 && first.name !== name) return { _tag: "Wait" }
      this.#slots.delete(name)
      this.#slots.set(name, known)
      known.users++
      return { _tag: "Claimed", slot: known, closing: [], fresh: false }
    }
    // One that is to be closed is still there under this name.
    if (known !== undefined || ahead) return { _tag: "Wait" }
    const closing: Array<Slot> = []
    const all = [...this.#slots.values()]
    const idle = all.filter(({ opened, users }) => users === 0 && opened)
    const room = () => {
      const left = all.filter((slot) => !closing.includes(slot))
      return left.length < loaded && left.reduce((sum, slot) => sum + slot.bytes, bytes) <= memoryBytes
    }
    while (!room() && idle.length > 0) closing.push(idle.shift()!)
    if (!room()) return { _tag: "Wait" }
    for (const slot of closing) {
      this.#slots.delete(slot.name)
      this.#leaving.add(slot)
    }
    const scope = Scope.makeUnsafe()
    const slot: Slot = {
      name,
      bytes,
      scope,
      ready: Deferred.makeUnsafe(),
      users: 1,
      opened: false,
      dropped: false,
      closing: false
    }
    this.#slots.set(name, slot)
    return { _tag: "Claimed", slot, closing, fresh: true }
  }

  #isBehind(other: Waiter, waiter: Waiter): boolean {
    const at = this.#waiting.indexOf(waiter)
    return at >= 0 && this.#waiting.indexOf(other) > at
  }

  /** Opens a model when those that make room for it are gone. Belongs to the service: whoever asked for it may leave. */
  #load(slot: Slot, closing: ReadonlyArray<Slot>): Effect.Effect<void> {
    // The end of the service waits until they are closed, and closes them itself where this was not begun.
    const room = Effect.uninterruptible(
      Effect.forEach(
        closing,
        (left) =>
          Effect.andThen(
            Scope.close(left.scope, Exit.void),
            Effect.sync(() => this.#leaving.delete(left))
          ),
        { discard: true }
      )
    )
    return room.pipe(
      Effect.andThen(Scope.provide(this.#open(slot.name), slot.scope)),
      Effect.exit,
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit)) slot.opened = true
        else slot.dropped = true
        Deferred.doneUnsafe(slot.ready, exit)
        if (Exit.isFailure(exit) || (slot.dropped && slot.users === 0)) return this.#close(slot)
        this.#wake()
        return Effect.void
      })
    )
  }

  #release(slot: Slot): Effect.Effect<void> {
    return Effect.suspend(() => {
      slot.users--
      if (slot.users > 0) return Effect.void
      if (slot.dropped) return this.#close(slot)
      this.#wake()
      return Effect.void
    })
  }

  /** Once, and to the end: under its name nothing else is opened before. */
  #close(slot: Slot): Effect.Effect<void> {
    const gone = Effect.sync(() => {
      if (this.#slots.get(slot.name) === slot) this.#slots.delete(slot.name)
      this.#wake()
    })
    return Effect.suspend(() => {
      if (slot.closing) return Effect.void
      slot.closing = true
      return Effect.uninterruptible(Effect.andThen(Scope.close(slot.scope, Exit.void), gone))
    })
  }

  /** Closes everything, whoever has it. */
  readonly end: Effect.Effect<void> = Effect.suspend(() => {
    this.#over = true
    this.#wake()
    const slots = [...this.#slots.values(), ...this.#leaving]
    for (const { name, ready } of slots) Deferred.doneUnsafe(ready, Exit.fail(closed(name)))
    const leave = ({ scope }: Slot) => Scope.close(scope, Exit.void)
    return Effect.forEach(slots, leave, { discard: true, concurrency: "unbounded" })
  })
}

/** The service, for the scope: leaving it closes all models. */
export const make = Effect.fnUntraced(function* (
  options: ModelsOptions
): Effect.fn.Return<Models["Service"], never, Scope.Scope> {
  const scope = yield* Effect.scope
  const keeper = new Keeper(options, scope)
  yield* Effect.addFinalizer(() => keeper.end)
  return Models.of({ use: keeper.use, drop: keeper.drop, loaded: keeper.loaded })
})
