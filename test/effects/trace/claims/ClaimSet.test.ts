/** How the check does on our labelled answers: the figures of docs/claims.md, to the claim. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { type Judged, judge, kinds, labelled } from "../../../kit/claims.ts"

const page = readFileSync(join(import.meta.dirname, "../../../../docs/claims.md"), "utf8")

const percent = (part: number, of: number): string => (of === 0 ? "–" : `${Math.round((100 * part) / of)} %`)

const rows = ({ scores }: Judged): ReadonlyArray<string> => {
  const all = { unsupported: 0, hits: 0, falseAlarms: 0 }
  const row = (name: string, { falseAlarms, hits, unsupported }: typeof all) =>
    `| ${name} | ${unsupported} | ${hits} | ${unsupported - hits} | ${falseAlarms} | ${percent(hits, hits + falseAlarms)} | ${percent(hits, unsupported)} |`
  for (const kind of kinds)
    for (const key of ["unsupported", "hits", "falseAlarms"] as const) all[key] += scores[kind][key]
  return [...kinds.map((kind) => row(kind, scores[kind])), row("all", all)]
}

describe("the labelled answers", () => {
  it("are at least 120, of every kind, and half of them hold nothing that is unsupported", () => {
    const clean = labelled.filter(({ claims }) => claims.every(([, , truth]) => truth === "s"))
    assert.isAtLeast(labelled.length, 120)
    assert.isAtLeast(clean.length, labelled.length / 2)
    for (const kind of kinds) assert.isTrue(labelled.some(({ claims }) => claims.some(([one]) => one === kind)))
    assert.include(page, `${labelled.length} answers`)
  })

  it("are judged as often rightly and wrongly as docs/claims.md says", () => {
    for (const row of rows(judge(labelled))) assert.include(page, row)
  })

  it("are judged wrongly where docs/claims.md says so", () => {
    const listed = [...page.matchAll(/^- `(\d+)` /gm)].map(([, id]) => Number(id))
    const wrong = new Set(judge(labelled).mistakes.map((one) => Number(one.split(" ")[0])))
    assert.sameMembers(listed, [...wrong])
  })

  it("support what a person says they support", () => {
    // Where a claim is labelled as borne out, it is never listed as unsupported.
    const { mistakes } = judge(labelled)
    const borne = labelled.flatMap(({ claims, id }) =>
      claims.filter(([, , truth]) => truth === "s").map(([kind, text]) => ({ id, kind, text }))
    )
    assert.isAtLeast(borne.length, 80)
    const alarmed = borne.filter(({ id, kind, text }) =>
      mistakes.some((one) => one.startsWith(`${id} false alarm: ${kind} `) && one.includes(text))
    )
    assert.deepStrictEqual(alarmed, [])
  })
})
