/** What a stream of texts tells of token ids. */
import { assert, describe, it } from "@effect/vitest"
import { TextHearing } from "../../src/engine/OpenAiCompletions.ts"
import { Fault } from "../../src/engine/OpenAiFault.ts"
import { request } from "../kit/openAiTurns.ts"

const heard = (ids: ReadonlyArray<unknown>) => {
  const hearing = new TextHearing("the server", request)
  hearing.take({ choices: [{ index: 0, text: "a", token_ids: ids, finish_reason: "length" }] })
  return hearing.end()?.ended.ids
}

describe("token ids of a server", () => {
  it("may be any number at once", () => {
    assert.lengthOf(heard(Array.from({ length: 500_000 }, () => 7)) ?? [], 500_000)
  })

  it("are the server's mistake where they are none, since the next prompt would be made of them", () => {
    for (const wrong of ["7", 1.5, -1, null, {}]) assert.throws(() => heard([1, wrong]), Fault as never)
  })
})
