/** What `writ doctor` says about where the engine runs: in a thread, or in a process of its own. Starts nothing. */
import type { Settings } from "../effects/SettingFields.ts"
import type { Check } from "./DoctorCheck.ts"

/**
 * A thread is the cheaper place, and a process the safer one for what others made: a damaged file or adapter can crash native
 * code, whatever was checked before. `ours`: the model is the one that ships.
 */
export const checkIsolation = (
  { isolation, lora, restarts }: Pick<Settings, "isolation" | "lora" | "restarts">,
  ours: boolean
): Check => {
  const name = "isolation"
  const often = restarts === 0 ? "it is not opened again" : `it is opened again up to ${restarts} times in ten minutes`
  if (isolation === "process") {
    return { name, state: "ok", text: `the engine has a process of its own; when it crashes, ${often}` }
  }
  const text = "the engine is a thread of this program: a native crash ends both"
  if (ours && lora.length === 0) return { name, state: "ok", text }
  const what = ours ? "adapters that others made" : "a model that others made"
  return {
    name,
    state: "note",
    text: `${text}, and it runs ${what}`,
    remedy: "--isolation process, for what must not end with it"
  }
}
