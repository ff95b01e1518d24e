/** The policies are a file here; the tool is what would ask the system that has them. */
import { readFileSync } from "node:fs"

export default ({ policy }) => {
  const policies = JSON.parse(readFileSync(new URL("../data/policies.json", import.meta.url), "utf8"))
  const found = policies.find(({ number }) => number === policy)
  if (found === undefined) throw new Error(`there is no policy ${policy}`)
  return found
}
