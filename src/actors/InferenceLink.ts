/**
 * A connection to one engine: calls over `Wire`, failures of the transport told apart from failures of the engine, and a look
 * now and then whether it still answers. One link per thread or process; whatever comes after its end is another link.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as RpcClient from "effect/rpc/RpcClient"
import type { RpcClientError } from "effect/rpc/RpcClientError"
import type { FromServerEncoded } from "effect/rpc/RpcMessage"
import type * as Scope from "effect/Scope"
import type { EngineError } from "../engine/EngineError.ts"
import type { Wire } from "../engine/Wire.ts"
import { endOf, Gone, type Host } from "./InferenceHost.ts"

export type Client = RpcClient.FromGroup<typeof Wire, RpcClientError>

export interface Link {
  readonly host: Host
  readonly client: Client
  /** How often an engine was opened before this one. */
  readonly restarts: number
  /** Fails with `Gone` at once where the engine has ended, and a call that is out when it ends. */
  readonly call: <A, R>(
    call: Effect.Effect<A, EngineError | RpcClientError | Gone, R>
  ) => Effect.Effect<A, EngineError | Gone, R>
}

/** Looks in a row that nothing answered before an engine counts as hung; a quarter of the limit apart. */
const looks = 4

/** An RPC client over the host's messages, without a pool: an engine that died stays dead. */
export const connect = Effect.fnUntraced(function* (
  host: Host,
  restarts: number,
  stallSeconds: number
): Effect.fn.Return<Link, never, Scope.Scope> {
  const [{ Wire }, Rpc, Errors, Schema] = yield* Effect.promise(() =>
    Promise.all([
      import("../engine/Wire.ts"),
      import("effect/rpc/RpcClient"),
      import("effect/rpc/RpcClientError"),
      import("effect/Schema")
    ])
  )
  const dead = () =>
    new Errors.RpcClientError({
      reason: new Errors.RpcClientDefect({ message: "the engine is gone", cause: host.end?.error })
    })
  let heard = 0
  const protocol = yield* Rpc.Protocol.make(
    Effect.fnUntraced(function* (write, clients) {
      const run = Effect.runForkWith(yield* Effect.context<never>())
      const deliver = (message: FromServerEncoded) =>
        run(Effect.forEach(clients, (client) => write(client, message), { discard: true }))
      host.hear((message) => {
        const [kind, body] = message as readonly [kind: number, body: FromServerEncoded]
        heard++
        if (kind === 1 && body._tag !== "Pong") deliver(body)
      })
      const ended = Effect.andThen(
        Deferred.await(host.gone),
        Effect.sync(() => deliver({ _tag: "ClientProtocolError", error: dead() }))
      )
      yield* Effect.forkScoped(ended)
      return {
        send: (_client, message) =>
          Effect.suspend(() => {
            if (host.end !== undefined) return Effect.fail(dead())
            host.post([0, message])
            return Effect.void
          }),
        supportsAck: false,
        supportsTransferables: false,
        codecFor: Schema.toCodecJson as typeof Rpc.Protocol.Service.codecFor
      }
    })
  )
  yield* Effect.forkScoped(watch(host, stallSeconds, () => heard))
  const client = yield* Rpc.make(Wire, { disableTracing: true }).pipe(Effect.provideService(Rpc.Protocol, protocol))
  return { host, client, restarts, call: calling(host) }
})

/**
 * Condemns an engine whose loop answers nothing for `stallSeconds`. A native call that does not come back is noticed over
 * there: this is for a process that is stopped, and for a loop that is blocked.
 */
const watch = (host: Host, stallSeconds: number, heard: () => number): Effect.Effect<void> => {
  let last = heard()
  let unanswered = 0
  const look = Effect.sync(() => {
    const now = heard()
    // Counted in looks and not by the clock: a machine that slept has not waited for an answer.
    unanswered = now === last ? unanswered + 1 : 0
    last = now
    if (unanswered <= looks) return host.post([0, { _tag: "Ping" }])
    host.condemn(endOf("stalled", `The engine has not answered for ${stallSeconds} s.`))
  })
  return Effect.forever(Effect.andThen(Effect.sleep((stallSeconds * 1000) / looks), look))
}

const calling = (host: Host): Link["call"] => {
  const gone = Effect.suspend(() => new Gone({ end: host.end ?? endOf("crashed", "The engine does not answer.") }))
  const told = (error: EngineError | RpcClientError | Gone): Effect.Effect<never, EngineError | Gone> => {
    if (error._tag === "Gone") return Effect.fail(error)
    if (error._tag !== "EngineError") return gone
    if (error.reason === "stalled") {
      host.condemn({ cause: "stalled", error: endOf("stalled", error.message).error })
      return gone
    }
    // What an engine that is about to end answers; why it ends is known then.
    return error.reason === "lost" ? Effect.andThen(Deferred.await(host.gone), gone) : Effect.fail(error)
  }
  return (call) => Effect.suspend(() => (host.end === undefined ? Effect.catch(call, told) : gone))
}
