/** Plays many worlds, and makes the first one that fails as small as it can. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { type Problem, problemsOf } from "./checks.ts"
import { playScenario } from "./play.ts"
import { type RunScenario, type Scenario, type SessionScenario, scenarioOf } from "./scenario.ts"
import type { Mutant } from "./world.ts"

export interface Failure {
  readonly seed: number
  readonly scenario: Scenario
  readonly problems: ReadonlyArray<Problem>
}

/** What is wrong with one world. A world that breaks altogether is a problem like any other. */
export const examine = (scenario: Scenario, mutant: Mutant = {}): Effect.Effect<ReadonlyArray<Problem>> =>
  playScenario(scenario, mutant).pipe(
    Effect.map(problemsOf),
    Effect.catchCause((cause) =>
      Effect.succeed([{ claim: "the world holds together", where: "the world", detail: Cause.pretty(cause) }])
    )
  )

/** The first seed from `from` on, `count` at most, whose world has a problem. */
export const firstFailure = Effect.fnUntraced(function* (from: number, count: number, mutant: Mutant = {}) {
  for (let seed = from; seed < from + count; seed++) {
    const scenario = scenarioOf(seed)
    const problems = yield* examine(scenario, mutant)
    if (problems.length > 0) return { seed, scenario, problems } satisfies Failure
  }
  return undefined
})

const without = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  list.map((_, at) => list.filter((_one, index) => index !== at))

const smallerRuns = (run: RunScenario): ReadonlyArray<RunScenario> => [
  ...without(run.turns).map((turns) => ({ ...run, turns })),
  ...without(run.stops).map((stops) => ({ ...run, stops })),
  ...(run.traceFault === undefined ? [] : [(({ traceFault: _, ...rest }) => rest)(run)]),
  ...Object.keys(run.limits).map((name) => {
    const { [name as keyof typeof run.limits]: _, ...limits } = run.limits
    return { ...run, limits }
  })
]

const smallerSessions = (session: SessionScenario): ReadonlyArray<SessionScenario> => [
  ...without(session.runs).map((runs) => ({ ...session, runs })),
  ...without(session.engine).map((engine) => ({ ...session, engine })),
  ...(session.codecFault === undefined ? [] : [(({ codecFault: _, ...rest }) => rest)(session)]),
  ...session.runs.flatMap((run, at) =>
    smallerRuns(run).map((smaller) => ({ ...session, runs: session.runs.with(at, smaller) }))
  )
]

const smaller = (scenario: Scenario): ReadonlyArray<Scenario> => [
  ...without(scenario.sessions).map((sessions) => ({ ...scenario, sessions })),
  ...without(scenario.pool).map((pool) => ({ ...scenario, pool })),
  ...without(scenario.ledger).map((ledger) => ({ ...scenario, ledger })),
  ...without(scenario.artifacts).map((artifacts) => ({ ...scenario, artifacts })),
  ...scenario.sessions.flatMap((session, at) =>
    smallerSessions(session).map((one) => ({ ...scenario, sessions: scenario.sessions.with(at, one) }))
  )
]

/** Worlds tried to make one smaller. */
const tries = 300

/** The same failure with as little around it as possible: parts are taken away as long as the same claim does not hold. */
export const shrink = Effect.fnUntraced(function* (failure: Failure, mutant: Mutant = {}) {
  const claims = new Set(failure.problems.map(({ claim }) => claim))
  let best = failure
  let left = tries
  for (let progress = true; progress && left > 0; ) {
    progress = false
    for (const scenario of smaller(best.scenario)) {
      if (left-- <= 0) break
      const problems = yield* examine(scenario, mutant)
      if (!problems.some(({ claim }) => claims.has(claim))) continue
      best = { ...best, scenario, problems }
      progress = true
      break
    }
  }
  return best
})

/** A failure in words, with the way to see it again. */
export const describeFailure = ({ problems, scenario, seed }: Failure): string => {
  const found = problems.map(({ claim, detail, where }) => `  ${where}: ${claim}: ${detail}`).join("\n")
  const alone = `WRIT_SEED=${seed} npx vitest run test/simulation`
  return `seed ${seed} fails\n${found}\nalone: ${alone}\nsmallest world that still fails:\n${JSON.stringify(scenario, null, 1)}`
}
