/** Artifact store and approver that answer what is on the record. Nothing is written or asked. */
import * as Effect from "effect/Effect"
import { ArtifactError, ArtifactStore } from "../../actors/ArtifactStore.ts"
import type { Approver, Decision } from "../Policy.ts"
import type { Published } from "./ReplayPool.ts"
import type { Tape } from "./ReplayTape.ts"

/** Gives recorded artifacts the references they had; what the loop itself puts down is kept by `memory`, bytes and all. */
export const artifacts = (
  tape: Tape,
  published: Published,
  memory: ArtifactStore["Service"]
): ArtifactStore["Service"] =>
  ArtifactStore.of({
    get: memory.get,
    put: (runId, artifact) =>
      Effect.suspend(() => {
        const known = published.get(artifact)
        if (known !== undefined) return Effect.succeed(known)
        return tape.next()?.record.event_type === "artifact_written"
          ? memory.put(runId, artifact)
          : Effect.fail(new ArtifactError({ message: "the artifact could not be kept when the run was recorded" }))
      })
  })

/** Decides as was decided. */
export const approver = (tape: Tape, name: string): Approver => ({
  name,
  decide: ({ callId }) =>
    Effect.suspend(() => {
      const next = tape.next()?.record
      return next?.event_type === "approval_decided" && next.data["call"] === callId
        ? Effect.succeed({ decision: next.data["decision"] as Decision, by: String(next.data["by"]) })
        : Effect.orDie(tape.interruption("approval_decided"))
    })
})
