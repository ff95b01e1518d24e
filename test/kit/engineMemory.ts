/** Run as a program with a small heap, not imported: a thread's engine is asked for more than fits, then goes on. Prints JSON. */
import * as Effect from "effect/Effect"
import { log, open, speak, system, user } from "./engineLife.ts"

const program = Effect.gen(function* () {
  const worker = yield* open({ isolation: "thread" })
  const session = yield* worker.model.session
  yield* session.commit([...system, ...user("hello")])
  const said = yield* speak(session)
  yield* session.rollback
  const before = yield* log(worker, session)
  const { message, reason } = yield* Effect.flip(session.commit(user("many words ".repeat(1_000_000))))
  const after = yield* log(worker, session)
  const again = yield* speak(session)
  const recoveries = session.recoveries?.()
  console.log(JSON.stringify({ reason, message, recoveries, before, after, said, again }))
}).pipe(Effect.scoped)

await Effect.runPromise(program)
