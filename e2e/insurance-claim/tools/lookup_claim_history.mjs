/** Earlier claims of one policy and their sum, out of a file that stands for the system that has them. */
import { readFileSync } from "node:fs"

export default ({ policy }) => {
  const all = JSON.parse(readFileSync(new URL("../data/claims.json", import.meta.url), "utf8"))
  const claims = all
    .filter((claim) => claim.policy === policy)
    .map(({ number, paid, date }) => ({ number, date, paid }))
  return { claims, paid: claims.reduce((sum, { paid }) => sum + paid, 0) }
}
