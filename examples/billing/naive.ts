/** What most programs do: try again when there was no answer. `node examples/billing/naive.ts --fault lost-answer` */
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { type Fault, invoicesAt, request, service } from "./service.ts"

const { values } = parseArgs({ options: { fault: { type: "string", default: "lost-answer" } } })

const program = Effect.gen(function* () {
  const url = yield* service(values.fault as Fault, "naive-books.json")
  const body = JSON.stringify({ order: "order-431", cents: 124_900 })
  const exit = yield* Effect.exit(
    request(`${url}/invoices`, { method: "POST", body }).pipe(
      Effect.tapError(() => Console.log("no answer, so: once more")),
      Effect.retry({ times: 3 })
    )
  )
  yield* Console.log(exit._tag === "Success" ? `${exit.value.status}: done` : "gave up: nothing happened, surely")
  const books = yield* invoicesAt(url)
  yield* Console.log(`In the books of the service: ${books.length}`)
})

program.pipe(Effect.scoped, NodeRuntime.runMain)
