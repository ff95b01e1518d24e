/**
 * Run as a program, not imported: takes the claim in a directory so many times, against others that do the same, and leaves a
 * dead one now and then. Ends with 1 where it was not alone. `claiming.ts DIRECTORY TIMES`
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeClaim, takeAway } from "../../src/actors/ClaimFile.ts"
import { textOf } from "../../src/actors/WholeFile.ts"
import { isAlive } from "../../src/tools/Alive.ts"

const [directory = "", times = "1"] = process.argv.slice(2)
const claim = join(directory, "claim")
const inside = join(directory, "inside")
const me = String(process.pid)
const dead = String(2 ** 30)

for (let taken = 0; taken < Number(times); ) {
  if (!makeClaim(claim, me)) {
    const left = textOf(claim)
    if (left !== undefined && !isAlive(Number(left))) takeAway(claim, left)
    continue
  }
  taken++
  try {
    writeFileSync(inside, me, { flag: "wx" })
  } catch {
    process.exit(1)
  }
  if (readFileSync(claim, "utf8") !== me) process.exit(1)
  rmSync(inside)
  // As one that is ended while it holds the claim: what is there is whole, and names nobody.
  if (taken % 3 === 0 && taken < Number(times)) {
    rmSync(claim)
    makeClaim(claim, dead)
  } else rmSync(claim)
}
