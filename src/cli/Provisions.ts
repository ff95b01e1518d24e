/**
 * What a run on the command line is made of: the tools there are, and the services. A program that embeds the command line,
 * or a test, puts its own in their place.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { Services } from "../effects/Agent.ts"
import * as Wiring from "../effects/Wiring.ts"
import type { EngineError } from "../engine/EngineError.ts"
import { registry } from "../tools/builtin/index.ts"
import type { RegistrationError, Registry } from "../tools/Registry.ts"
import { explained } from "./EngineSettings.ts"

export interface Provided {
  /** Every tool that `--tools` can name. */
  readonly tools: Effect.Effect<Registry, RegistrationError>
  /** The services of one run. */
  readonly services: (options: Wiring.WiringOptions) => Layer.Layer<Services, EngineError | LedgerError>
}

export const Provisions = Context.Reference<Provided>("effect-writ/cli/Provisions", {
  defaultValue: () => ({ tools: registry, services: (options) => explained(Wiring.layer(options), options.gpu) })
})
