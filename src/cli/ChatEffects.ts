/** What the calls of one message left behind outside, read off its events. */
import type { ArtifactRef } from "../actors/ArtifactStore.ts"
import type { AgentEvent } from "../effects/AgentEvent.ts"
import type { JsonObject } from "../tools/JsonText.ts"
import type { Registry } from "../tools/Registry.ts"

/** An effect that is there, or of which nobody knows whether it is. */
export interface Left {
  readonly callId: string
  readonly tool: string
  readonly arguments: JsonObject
  readonly certain: boolean
  readonly artifacts: ReadonlyArray<ArtifactRef>
  /** The tool that undoes it, where there is one. */
  readonly compensation: string | undefined
}

export class ChatEffects {
  readonly #registry: Registry
  readonly #proposed = new Map<string, JsonObject>()
  readonly #artifacts = new Map<string, Array<ArtifactRef>>()
  readonly #left: Array<Left> = []

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** In the order of the calls' ends. */
  get left(): ReadonlyArray<Left> {
    return this.#left
  }

  readonly event = (event: AgentEvent): void => {
    if (event._tag === "CallProposed") this.#proposed.set(event.callId, event.arguments)
    if (event._tag === "ArtifactWritten") {
      const known = this.#artifacts.get(event.callId)
      if (known === undefined) this.#artifacts.set(event.callId, [event.artifact])
      else known.push(event.artifact)
    }
    if (event._tag !== "CallFinished" || event.effect === "none") return
    const { callId, effect, tool } = event
    this.#left.push({
      callId,
      tool,
      arguments: this.#proposed.get(callId) ?? {},
      certain: effect === "present",
      artifacts: this.#artifacts.get(callId) ?? [],
      compensation: this.#registry.get(tool)?.contract.compensation
    })
  }
}
