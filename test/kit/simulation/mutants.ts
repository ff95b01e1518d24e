/** Things that would be wrong with the product. The simulation is good if it notices each of them. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { vocabulary } from "../../../src/actors/TraceEvent.ts"
import type { RunTrace } from "../../../src/actors/TraceWriter.ts"
import type { Codec } from "../../../src/engine/codecs/Codec.ts"
import type { Mutant } from "./world.ts"

/** A record that leaves out one kind of event. */
const dropping =
  (type: string) =>
  (trace: RunTrace): RunTrace => ({
    ...trace,
    append: (...events) => trace.append(...events.filter((event) => event.type !== type)),
    note: (...events) => trace.note(...events.filter((event) => event.type !== type)),
    offer: (event) => {
      if (event.type !== type) trace.offer(event)
    }
  })

/** Events whose absence nobody can notice from outside: they are allowed to be missing. */
const optional: ReadonlySet<string> = new Set([
  "generation_token",
  // Only a run that was resumed has one.
  "run_resumed",
  // A call that is given up may never end.
  "late_outcome"
])

/** Every event type that has to be there. */
export const droppable: ReadonlyArray<string> = Object.keys(vocabulary).filter((type) => !optional.has(type))

export const dropsEvent = (type: string): Mutant => ({ trace: dropping(type) })

const renumbering = (every: number) => {
  let count = 0
  return (lines: string): string =>
    lines.replaceAll(/"seq":(\d+)/g, (whole, seq) => (++count % every === 0 ? `"seq":${Number(seq) + 1}` : whole))
}

const answering = (change: (list: Parameters<Codec["answers"]>[0]) => Parameters<Codec["answers"]>[0]): Mutant => ({
  codec: (codec) => ({ ...codec, answers: (list) => codec.answers(change(list)) })
})

export const mutants: Readonly<Record<string, Mutant>> = {
  "a turn that was rolled back stays in the context": {
    engine: (session) => ({
      ...session,
      turn: (opening, request) => {
        let said = ""
        return session.turn(opening, request).pipe(
          Stream.tap((event) =>
            Effect.sync(() => {
              if (event._tag === "Piece") said += event.text
            })
          ),
          Stream.onExit((exit) =>
            exit._tag === "Failure" && said !== ""
              ? Effect.ignore(session.commit([{ kind: "text", text: said }]))
              : Effect.void
          )
        )
      }
    })
  },
  "rolling back does nothing to a turn that cannot be kept": {
    engine: (session) => ({ ...session, rollback: Effect.ignore(session.keep([])) })
  },
  "the last answer of a turn is not put before the model": answering((list) =>
    list.length > 1 ? list.slice(0, -1) : list
  ),
  "an answer is changed on its way to the model": answering((list) =>
    list.map((answer) => ({ ...answer, text: answer.text.replace("true", "false") }))
  ),
  "answers come in another order": answering((list) => list.toReversed()),
  "a call is executed twice": {
    pool: (pool) => ({ run: (call, late) => Effect.andThen(pool.run(call), pool.run(call, late)) })
  },
  "a call is not executed, and said to be": {
    pool: (pool) => ({
      run: (call, late) =>
        call.tool.name === "add"
          ? Effect.succeed({ _tag: "Succeeded", result: 4, artifacts: [], millis: 0 })
          : pool.run(call, late)
    })
  },
  "the pool's own failures are swallowed": {
    pool: (pool) => ({
      run: (call, late) =>
        Effect.catchDefect(pool.run(call, late), () =>
          Effect.succeed({ _tag: "Succeeded", result: "ok", artifacts: [], millis: 0 } as const)
        )
    })
  },
  "a cancel is ignored": { cancel: () => Effect.void },
  "wall time is ignored": { limits: (limits) => ({ ...limits, wallMillis: Infinity }) },
  "nobody listens to who says no": {
    approver: (approver) => ({
      ...approver,
      decide: (request) => Effect.map(approver.decide(request), () => "allow" as const)
    })
  },
  "the ledger forgets what it was told": {
    ledger: (ledger) => ({ ...ledger, begin: () => Effect.succeed({ _tag: "New" }), settle: () => Effect.void })
  },
  "an effect is never settled": { ledger: (ledger) => ({ ...ledger, settle: () => Effect.void }) },
  "an artifact is said to be stored and is not": {
    artifacts: (store) => ({
      ...store,
      put: (_run, artifact) =>
        Effect.succeed({
          artifactId: `0123456789abcdef-${artifact.name}`,
          name: artifact.name,
          sha256: "0123456789abcdef".repeat(4),
          bytes: artifact.bytes.length,
          mediaType: artifact.mediaType,
          path: undefined
        })
    })
  },
  "an artifact is stored twice": {
    artifacts: (store) => ({
      ...store,
      put: (run, artifact) =>
        Effect.andThen(store.put(run, { ...artifact, bytes: Buffer.from("other") }), store.put(run, artifact))
    })
  },
  "numbers of the record have a gap": { lines: renumbering(7) },
  "the record is changed afterwards": { lines: (lines) => lines.replace('"ok":false', '"ok":true') },
  "the last line of each write is lost": { lines: (lines) => lines.replace(/[^\n]*\n$/, "") },
  "content is written although it is off": {
    trace: (trace) => ({ ...trace, text: (value) => value, json: (value) => value })
  },
  "the record goes on after its end": {
    trace: (trace) => ({
      ...trace,
      append: (...events) =>
        Effect.andThen(
          trace.append(...events),
          events.some(({ step }) => step === "finalize")
            ? trace.append({
                type: "call_skipped",
                step: "model-0",
                data: { call: "x", ordinal: 0, tool: "add", reason: "" }
              })
            : Effect.void
        )
    })
  }
}
