/**
 * Owns the durable record of effects by key: the intent is kept before a tool acts, the outcome before the model is told.
 * Whoever asks again under the same key is given what it came to, or told that nobody knows; it never decides to act again.
 * It runs no tools and keeps no arguments. This file has the service, its protocol, and the backends without a file.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { StagedStatement } from "../tools/ToolCall.ts"
import {
  type Command,
  commandKey,
  decide,
  type Intent,
  type LedgerEntry,
  type Resolution,
  type SettledOutcome,
  type Stance,
  type Standing,
  standingOf
} from "./EffectLedgerEntry.ts"
import { LedgerError } from "./EffectLedgerError.ts"

/**
 * What `begin` found. `New`: the intent is durable now, the caller must act and then settle. `Settled`: it happened before,
 * this is what it came to. `Unknown`: it may have happened; do not act. `Conflict`: the key was used for something else.
 */
export type Begun =
  | { readonly _tag: "New" }
  | { readonly _tag: "Settled"; readonly outcome: SettledOutcome }
  | { readonly _tag: "Unknown"; readonly entry: LedgerEntry }
  | { readonly _tag: "Conflict"; readonly entry: LedgerEntry }

/** An entry, and how things stand with it at the moment. */
export interface LedgerRecord {
  readonly entry: LedgerEntry
  readonly standing: Standing
}

export interface LedgerFilter {
  readonly runId?: string
  readonly standing?: Standing
}

export class EffectLedger extends Context.Service<
  EffectLedger,
  {
    /**
     * Asks for the right to act once under a key. While a live owner is at work it waits for that owner's outcome, and gives
     * `Unknown` if none comes in time. The step to `New` cannot be interrupted, the wait can, also where the caller cannot:
     * call it uninterruptibly and nothing lies between `New` and the caller's own duty to settle.
     */
    readonly begin: (intent: Intent) => Effect.Effect<Begun, LedgerError>
    /**
     * The same, but an unknown attempt is taken over: `New` means try again under the same key. For effects that a repeat
     * cannot double: the tool honours the key, shares the ledger's transaction, or was observed to have left nothing.
     * An entry of mode `none` is never taken over.
     */
    readonly retake: (intent: Intent) => Effect.Effect<Begun, LedgerError>
    /** Records what this ledger's own attempt came to. Saying the same twice is fine. A failure means: nobody knows. */
    readonly settle: (key: string, outcome: SettledOutcome) => Effect.Effect<void, LedgerError>
    /**
     * `settle` for an outcome that succeeds only with what its tool has staged: outcome and statements are one transaction.
     * Gives what is on the record now: the outcome, or the failure that took its place because the database refused a
     * statement; then none of them has left anything. Only where the ledger is `transactional`.
     */
    readonly commit: (
      key: string,
      outcome: SettledOutcome,
      staged: ReadonlyArray<StagedStatement>
    ) => Effect.Effect<SettledOutcome, LedgerError>
    /** Can statements of tools be part of its transactions? If not: why, and what to do about it. */
    readonly transactional: true | string
    /** Records what arrived after the caller had moved on. It settles an unknown effect and changes no settled one. */
    readonly late: (key: string, outcome: SettledOutcome) => Effect.Effect<void, LedgerError>
    /** A person settles an unknown effect. */
    readonly resolve: (key: string, resolution: Resolution) => Effect.Effect<void, LedgerError>
    readonly get: (key: string) => Effect.Effect<LedgerRecord | undefined, LedgerError>
    /** Oldest first. */
    readonly list: (filter?: LedgerFilter) => Effect.Effect<ReadonlyArray<LedgerRecord>, LedgerError>
  }
>()("effect-writ/actors/EffectLedger") {}

/** Where entries are kept. Commands are applied by `decide`, one after the other, each durable before its answer. */
export interface LedgerStore {
  readonly me: string
  readonly transactional: true | string
  readonly submit: (command: Command) => Effect.Effect<Result.Result<Stance, LedgerError>, LedgerError>
  readonly alive: (owner: string) => Effect.Effect<boolean, LedgerError>
  readonly entry: (key: string) => Effect.Effect<LedgerEntry | undefined, LedgerError>
  readonly entries: (runId: string | undefined) => Effect.Effect<ReadonlyArray<LedgerEntry>, LedgerError>
}

export interface LedgerTiming {
  /** How long `begin` waits for somebody else's outcome: the longest a tool may take, and some. Default 90 s. */
  readonly waitMillis?: number
  /** How often it looks for an outcome of another process. Default 20 ms. */
  readonly pollMillis?: number
}

const digest = /^[0-9a-f]{64}$/

const misshapen = ({ argumentsDigest, key }: Intent, retake: boolean): LedgerError | undefined => {
  if (digest.test(key) && digest.test(argumentsDigest)) return undefined
  const operation = retake ? "retake" : "begin"
  const message = "the key and the arguments digest of an intent are 64 lower-case hex digits each"
  return new LedgerError({ operation, reason: "invalid", message })
}

/** Fibers of this instance that wait for an outcome, by key. */
const makeWaiters = () => {
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()
  return {
    wake: (key: string): void => {
      for (const deferred of waiting.get(key) ?? []) Deferred.doneUnsafe(deferred, Effect.void)
    },
    /** Registers for the time of `use`, so that nothing that happens meanwhile is missed. */
    with: <A, E>(key: string, use: (woken: Effect.Effect<void>) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const deferred = Deferred.makeUnsafe<void>()
          const here = waiting.get(key) ?? new Set()
          waiting.set(key, here.add(deferred))
          return { deferred, here }
        }),
        ({ deferred }) => use(Deferred.await(deferred)),
        ({ deferred, here }) =>
          Effect.sync(() => {
            here.delete(deferred)
            if (here.size === 0) waiting.delete(key)
          })
      )
  }
}

const begun = (stance: Exclude<Stance, { _tag: "Running" }>): Effect.Effect<Begun> =>
  stance._tag === "Done" ? Effect.die(new Error("a store answered an intent with Done")) : Effect.succeed(stance)

/** How things stand with an entry, and waiting until nobody works on it any more. */
const makeWatch = (store: LedgerStore, pollMillis: number) => {
  const waiters = makeWaiters()

  const standing = Effect.fnUntraced(function* (entry: LedgerEntry) {
    const { owner } = entry.attempts[entry.attempts.length - 1]!
    const open = standingOf(entry, () => true) === "running"
    const alive = open && owner !== store.me ? yield* store.alive(owner) : true
    return standingOf(entry, () => alive)
  })

  /** Waits for a sign that the key may no longer be worked on; true once that is so. */
  const look = (key: string) =>
    waiters.with(key, (woken) =>
      Effect.gen(function* () {
        const entry = yield* store.entry(key)
        if (entry === undefined || (yield* standing(entry)) !== "running") return true
        const own = entry.attempts[entry.attempts.length - 1]!.owner === store.me
        yield* own ? woken : Effect.sleep(pollMillis)
        return false
      })
    )

  const idle = Effect.fnUntraced(function* (key: string) {
    while (!(yield* look(key))) {
      // The owner may have said something that leaves it running; then look again.
    }
  })

  return { standing, idle, wake: waiters.wake }
}

/** Whoever asked could have known: nothing was recorded. */
const refuseStaged = (key: string, lacks: string) =>
  Effect.fail(
    new LedgerError({
      operation: "settle",
      reason: "invalid",
      message: `effect ${key}: nothing can be staged: ${lacks}`
    })
  )

/** What is on the record after a commit: the outcome, or what took its place. */
const committed = (stance: Stance, outcome: SettledOutcome): SettledOutcome =>
  stance._tag === "Done" ? (stance.instead ?? outcome) : outcome

/** The protocol on top of a store: waiting for whoever is at work, and saying how things stand. */
export const make = (store: LedgerStore, timing: LedgerTiming = {}): EffectLedger["Service"] => {
  const { pollMillis = 20, waitMillis = 90_000 } = timing
  const { idle, standing, wake } = makeWatch(store, pollMillis)

  const submit = (command: Command) =>
    Effect.uninterruptible(
      Effect.flatMap(store.submit(command), (reply) => {
        if (Result.isFailure(reply)) return Effect.fail(reply.failure)
        if (reply.success._tag === "Done") wake(commandKey(command))
        return Effect.succeed(reply.success)
      })
    )

  /** Waits for the one who is at work and asks again, until there is an answer or no time left. */
  const wait = Effect.fnUntraced(function* (
    command: Extract<Command, { _tag: "Begin" }>,
    found: Extract<Stance, { _tag: "Running" }>
  ): Effect.fn.Return<Begun, LedgerError> {
    const until = (yield* Clock.currentTimeMillis) + waitMillis
    let stance: Stance = found
    while (stance._tag === "Running") {
      const unknown = { _tag: "Unknown", entry: stance.entry } as const
      const left = until - (yield* Clock.currentTimeMillis)
      if (left <= 0) return unknown
      const idled = yield* Effect.interruptible(Effect.timeoutOption(idle(command.intent.key), left))
      if (Option.isNone(idled)) return unknown
      stance = yield* submit(command)
    }
    return yield* begun(stance)
  })

  const begin = (intent: Intent, retake: boolean): Effect.Effect<Begun, LedgerError> => {
    const wrong = misshapen(intent, retake)
    if (wrong !== undefined) return wrong
    const command = { _tag: "Begin", intent, retake } as const
    return Effect.flatMap(submit(command), (stance) =>
      stance._tag === "Running" ? wait(command, stance) : begun(stance)
    )
  }

  const commit: EffectLedger["Service"]["commit"] = (key, outcome, staged) =>
    store.transactional === true
      ? Effect.map(submit({ _tag: "Settle", key, outcome, staged }), (stance) => committed(stance, outcome))
      : refuseStaged(key, store.transactional)

  const record = (entry: LedgerEntry) => Effect.map(standing(entry), (standing): LedgerRecord => ({ entry, standing }))

  return EffectLedger.of({
    begin: (intent) => begin(intent, false),
    retake: (intent) => begin(intent, true),
    settle: (key, outcome) => Effect.asVoid(submit({ _tag: "Settle", key, outcome })),
    commit,
    transactional: store.transactional,
    late: (key, outcome) => Effect.asVoid(submit({ _tag: "Late", key, outcome })),
    resolve: (key, resolution) => Effect.asVoid(submit({ _tag: "Resolve", key, resolution })),
    get: (key) =>
      Effect.flatMap(store.entry(key), (entry) => (entry === undefined ? Effect.succeed(undefined) : record(entry))),
    list: Effect.fnUntraced(function* (filter = {}) {
      const records = yield* Effect.forEach(yield* store.entries(filter.runId), record)
      return filter.standing === undefined ? records : records.filter(({ standing }) => standing === filter.standing)
    })
  })
}

/** Oldest first, then by key, so that lists are the same everywhere. */
export const inOrder = (entries: Iterable<LedgerEntry>): ReadonlyArray<LedgerEntry> =>
  [...entries].sort((a, b) => a.attempts[0]!.at - b.attempts[0]!.at || (a.key < b.key ? -1 : 1))

/** Why a ledger without a database cannot execute statements of tools, and what to do about it. */
export const notTransactional =
  "this run needs an effect ledger in a file or on PostgreSQL: name one (--ledger, or ledger in the options)"

/** Keeps entries as long as the layer lives: single flight and replay inside one process, nothing after it. */
export const layerMemory = (timing?: LedgerTiming): Layer.Layer<EffectLedger> =>
  Layer.sync(EffectLedger, () => {
    const entries = new Map<string, LedgerEntry>()
    const me = "memory"
    return make(
      {
        me,
        transactional: notTransactional,
        submit: (command) =>
          Effect.clockWith((clock) =>
            Effect.sync(() => {
              const key = commandKey(command)
              const now = clock.currentTimeMillisUnsafe()
              const { put, reply } = decide(command, entries.get(key), { now, me, alive: () => true })
              if (put !== undefined) entries.set(key, put)
              return reply
            })
          ),
        alive: () => Effect.succeed(true),
        entry: (key) => Effect.sync(() => entries.get(key)),
        entries: (runId) =>
          Effect.sync(() =>
            inOrder([...entries.values()].filter((entry) => runId === undefined || entry.runId === runId))
          )
      },
      timing
    )
  })

/** Remembers nothing: every intent is new. Only for runs whose tools have no effects. */
export const layerNone: Layer.Layer<EffectLedger> = Layer.succeed(
  EffectLedger,
  EffectLedger.of({
    begin: () => Effect.succeed({ _tag: "New" }),
    retake: () => Effect.succeed({ _tag: "New" }),
    settle: () => Effect.void,
    commit: (key) => refuseStaged(key, notTransactional),
    transactional: notTransactional,
    late: () => Effect.void,
    resolve: (key) =>
      Effect.fail(
        new LedgerError({ operation: "resolve", reason: "missing", message: `effect ${key}: this run keeps no ledger` })
      ),
    get: () => Effect.succeed(undefined),
    list: () => Effect.succeed([])
  })
)
