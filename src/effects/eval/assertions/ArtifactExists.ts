/** `artifact_exists`: the run wrote an artifact with this content, by its SHA-256, and perhaps of this name. */
import * as Schema from "effect/Schema"
import { turnEvents } from "../../conversation/Conversation.ts"
import { kind } from "../Kind.ts"
import { fail, pass, quote } from "../Verdict.ts"
import { recordMissing } from "./Settled.ts"

const Sha256 = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

export const artifactExists = kind(
  "artifact_exists",
  { sha256: Sha256, name: Schema.optionalKey(Schema.NonEmptyString) },
  ({ name, sha256 }, subject) => {
    const written = subject.events(turnEvents.artifact)
    if (written.some((one) => one.sha256 === sha256 && (name === undefined || one.name === name))) return pass
    const seen = written.map((one) => `${String(one.name)} ${String(one.sha256).slice(0, 12)}…`)
    const what =
      seen.length === 0 ? (recordMissing(subject) ?? "no artifact was written") : `written: ${seen.join(", ")}`
    return fail(
      `no artifact ${name === undefined ? "" : `${quote(name)} `}with SHA-256 ${sha256.slice(0, 12)}…; ${what}`
    )
  }
)
