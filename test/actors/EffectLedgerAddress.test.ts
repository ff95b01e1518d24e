import { assert, it } from "@effect/vitest"
import { isAddress, shownPlace } from "../../src/actors/EffectLedgerAddress.ts"

it("an address of a server is told from a file by how it begins", () => {
  for (const address of ["postgres://db/runs", "postgresql:///runs", "POSTGRES://db"]) assert.isTrue(isAddress(address))
  for (const file of ["ledger.sqlite", "postgres", "./postgres://x", "memory", "mysql://x"])
    assert.isFalse(isAddress(file))
})

it("an address is shown without its password, wherever it stands, and a file as it is", () => {
  const shown = {
    "postgres://ada:pw@db.example:5433/runs?sslmode=require": "postgres://ada@db.example:5433/runs?sslmode=require",
    "postgres:///runs?host=/run/pg&password=pw": "postgres:///runs?host=/run/pg",
    "postgres://db/x?options=-c%20search_path%3Dwrit#pw": "postgres://db/x?options=-c search_path=writ",
    "postgres://u:pw@[::/x": "postgres://…",
    "dir/pw:x@file": "dir/pw:x@file"
  }
  for (const [place, expected] of Object.entries(shown)) assert.strictEqual(shownPlace(place), expected)
})
