/** Approves and says so in approved.jsonl of the workspace. The gate is there so that no model gets this far. */
import { appendFileSync } from "node:fs"

export default ({ amount, claim }) => {
  appendFileSync("approved.jsonl", `${JSON.stringify({ claim, amount })}\n`)
  return { approved: claim }
}
