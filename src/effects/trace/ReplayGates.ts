/**
 * Who decided about calls in a recorded run, as far as provenance names them, and a clock for the waits that are on the
 * record. What permissions and values came to is read from what was recorded of each call.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Registry } from "../../tools/Registry.ts"
import { type Authority, everything } from "../Authority.ts"
import { defaults, type Gates } from "../Gates.ts"
import { type Governor, standard } from "../Governor.ts"
import type { TaskProfile } from "../Profile.ts"
import { loopsOwn, reasonOf } from "./ReplayPool.ts"
import type { Tape } from "./ReplayTape.ts"
import type { TraceRecord } from "./TraceReader.ts"

type Data = TraceRecord["data"]

const authorityOf = (tape: Tape, name: string): Authority => {
  if (name === everything.name) return everything
  return {
    name,
    check: () =>
      Effect.sync(() => {
        const next = tape.next()?.record
        if (next?.data["scopes"] !== "fail") return []
        const refused = tape.coming(
          ({ data, event_type: type }) => type === "tool_call_rejected" && data["call"] === next.data["call"]
        )
        const errors = (refused?.data["errors"] ?? []) as ReadonlyArray<{ readonly reason: string }>
        return errors.map(({ reason }) => {
          const at = reason.indexOf(": ")
          return { what: reason.slice(0, at), reason: reason.slice(at + 2) }
        })
      })
  }
}

const governorOf = (tape: Tape, name: string, weights: Governor["weights"]): Governor => {
  if (name === standard.name) return standard
  const value = (id: string): number => {
    const scored = tape.coming(({ event_type: type }) => type === "proposal_scored")?.data["candidates"]
    const found = Array.isArray(scored) ? (scored as ReadonlyArray<Data>).find((one) => one["id"] === id) : undefined
    return typeof found?.["value"] === "number" ? found["value"] : Number.NaN
  }
  return { name, weights, value: (_, { id }) => Effect.sync(() => value(id)) }
}

/** The gates of a recorded run; those of one that does not name them are the ordinary ones. */
export const gatesOf = (tape: Tape, said: unknown): Partial<Gates> => {
  if (said === undefined) return {}
  const { authority, candidates, dry_run, governor, profile, retry, weights } = said as Readonly<Record<string, Data>>
  return {
    profile: profile as unknown as TaskProfile,
    authority: authorityOf(tape, String(authority)),
    governor: governorOf(tape, String(governor), weights as unknown as Governor["weights"]),
    retry: {
      attempts: Number(retry?.["attempts"] ?? defaults.retry.attempts),
      delayMillis: Number(retry?.["delay_ms"] ?? defaults.retry.delayMillis),
      factor: Number(retry?.["factor"] ?? defaults.retry.factor)
    },
    dryRun: (dry_run as unknown) === true,
    candidates: Number(candidates ?? 1),
    // An approval expires where the record says so; see the clock.
    approvalMillis: 0
  }
}

/** Is the next thing on the record that an approval came too late? */
const hasExpired = (tape: Tape): boolean => {
  const next = tape.next()?.record
  if (next?.event_type !== "tool_call_rejected" || next.data["kind"] !== "refused") return false
  const { call } = next.data
  return tape.records
    .slice(0, tape.compared)
    .some(({ data, event_type: type }) => type === "tool_call_validated" && data["call"] === call)
}

/**
 * Time passes only where the record shows that something was waited for: before another try, and while a promise was open.
 * Whatever else a clock brought about is on the record.
 */
export const clockOf = (tape: Tape, tools: Registry): Clock.Clock => {
  let now = 0
  const millis = () => now + (hasExpired(tape) ? 1 : 0)
  const waited = (duration: number): boolean => {
    const { data, event_type: type } = tape.previous ?? { data: {} as Data, event_type: "" }
    if (type === "retry_scheduled") return Math.abs(duration - Number(data["delay_ms"])) < 0.001
    const settle = tools.get(String(data["tool"]))?.contract.settle
    return type === "effect_accepted" && settle !== undefined && duration <= settle.everyMillis
  }
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: () => BigInt(Math.round(millis() * 1e6)),
    currentTimeNanos: Effect.sync(() => BigInt(Math.round(millis() * 1e6))),
    monotonicTimeNanosUnsafe: () => BigInt(Math.round(millis() * 1e6)),
    monotonicTimeNanos: Effect.sync(() => BigInt(Math.round(millis() * 1e6))),
    sleep: (duration) =>
      Effect.suspend(() => {
        const length = Duration.toMillis(duration)
        if (!waited(length)) return Effect.never
        const next = tape.next()?.record
        const stopped = next?.event_type === "tool_execution_finished" && reasonOf(next) === loopsOwn.stopped
        if (stopped) return tape.enactStop({ _tag: "Cancelled", at: "tool" })
        now += length
        return Effect.yieldNow
      })
  }
}
