/** One tool that never ends and one that does, registered by hand: a thread that loads no schema compiler starts fast. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { cautious } from "../../src/tools/Contract.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import type { RegisteredTool, Registry } from "../../src/tools/Registry.ts"
import { bind } from "../../src/tools/Terms.ts"
import type { ValidatedArguments } from "../../src/tools/Validation.ts"

const tool = (name: string, run: RegisteredTool["run"]): RegisteredTool => ({
  name,
  spec: { name, description: name, parameters: { type: "object" } },
  contract: cautious({ risk: "read" }),
  terms: bind({}, { params: () => ({}), result: (json) => json, encode: () => Effect.succeed(null) }),
  hash: name,
  check: (raw: JsonObject) => Result.succeed({ raw, effective: raw } as unknown as ValidatedArguments),
  run
})

const spin = Effect.sync(() => {
  for (let turn = 0; ; turn++) if (turn < 0) return turn
})

const tools = [tool("spin", () => spin), tool("answer", () => Effect.succeed("well"))]

export const made: Registry = {
  tools,
  specs: tools.map(({ spec }) => spec),
  get: (name) => tools.find((tool) => tool.name === name),
  hash: "spinning"
}

export const registry: Effect.Effect<Registry> = Effect.succeed(made)
