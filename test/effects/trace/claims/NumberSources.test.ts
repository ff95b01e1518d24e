import { assert, describe, it } from "@effect/vitest"
import { sentencesOf } from "../../../../src/effects/trace/claims/AnswerText.ts"
import { numbersIn } from "../../../../src/effects/trace/claims/NumberForms.ts"
import { NumberSources } from "../../../../src/effects/trace/claims/NumberSources.ts"

interface Told {
  readonly task?: string
  readonly result?: unknown
  readonly args?: unknown
}

const sourceOf = (told: Told, number: string) => {
  const sources = new NumberSources()
  if (told.task !== undefined) sources.task(told.task)
  if (told.result !== undefined) sources.value("result", told.result)
  if (told.args !== undefined) sources.value("arguments", told.args)
  const [mention] = [...sentencesOf(number)].flatMap((one) => numbersIn(one))
  return sources.find(mention!)
}

describe("a number", () => {
  const cases: ReadonlyArray<readonly [what: string, told: Told, number: string, source: string | undefined]> = [
    ["of the task", { task: "Take 17.5 of it" }, "17.5", "task"],
    ["of the task in words", { task: "Read three files" }, "3", "task"],
    ["of a result", { result: { a: [{ b: 42 }] } }, "42", "result"],
    ["of a result's text", { result: "score: 0,612" }, "0.612", "result"],
    ["of a file that is JSON", { result: '{"score": 0.612}' }, "0.612", "result"],
    ["of arguments only", { args: { n: 7.5 } }, "7.5", "arguments"],
    ["that is rounded", { result: 21.5686 }, "21.57", "result"],
    ["that is rounded wrongly", { result: 21.5686 }, "21.56", undefined],
    ["that is rounded to nothing", { result: 21.5686 }, "22 %", "result"],
    ["without its sign", { result: -3.25 }, "3.25", "result"],
    ["in percent", { result: 0.834 }, "83.4 %", "result"],
    ["in another unit of money", { result: 124_900 }, "1249.00 EUR", "result"],
    ["in thousands", { result: 709_037 }, "709 thousand", "result"],
    ["in megabytes of either kind", { result: 2_411_724 }, "2.3 MB", "result"],
    ["in seconds", { result: 1934 }, "1.9 s", "result"],
    ["that is a difference", { result: [0.612, 0.744] }, "0.132", "derived"],
    ["that is a change in percent", { result: [0.612, 0.744] }, "21.57 %", "derived"],
    ["that is a part of a sum", { result: [1830, 412] }, "82 %", "derived"],
    ["that is a percentage of another", { task: "17.5% of 240" }, "42", "derived"],
    ["that is a total by field", { result: [{ a: 1.5 }, { a: 2.5 }, { a: 9 }] }, "13.0", "derived"],
    ["that is a mean by column", { result: "x,10\ny,20\nz,15" }, "15.0", "result"],
    ["that is a share of a column's total", { result: "a\nx 120\ny 98\nz 150" }, "40.8 %", "derived"],
    ["that is no share of it", { result: "a\nx 120\ny 98\nz 150" }, "41.8 %", undefined],
    ["of a cell beside another number", { result: "id,count\n1,10\n2,25\n3,30" }, "25", "result"],
    ["that is the total of such cells", { result: "id,count\n1,10\n2,25\n3,30" }, "65.0", "derived"],
    ["of a cell behind a quoted comma", { result: 'name,count\n"a, b",17\n"c, d",4' }, "17", "result"],
    ["of prose in lines that look like cells", { result: "Total: 1,234\nMean: 5,678" }, "1234", "result"],
    ["that is over a bound", { result: 3680.75 }, "More than 3,600", "result"],
    ["that is far over a bound", { result: 3720 }, "More than 3,600", undefined],
    ["that nearly reaches a bound", { result: 3930 }, "nearly 4,000", "result"],
    ["in words of millions", { result: "3.7 million people" }, "3,700,000", "result"],
    ["in millions of another language", { result: 3_700_000 }, "3,7 Mio.", "result"],
    ["of a month by its name", { result: "on 12 March 2026" }, "12.3.2026", "result"],
    ["of another month by its name", { result: "on 12 April 2026" }, "12.3.2026", undefined],
    ["of a time of the afternoon", { task: "at 14:30" }, "2:30 pm", "task"],
    ["of a time by twenty-four hours", { result: "at 2:30 pm" }, "14:30", "result"],
    ["of another time of the afternoon", { task: "at 14:30" }, "3:30 pm", undefined],
    ["that counts items", { result: ["a", "b", "c", "d"] }, "4", "count"],
    ["that counts lines", { result: "a\nb\nc" }, "three", "count"],
    ["that could be any quotient", { result: [12, 40] }, "three", undefined],
    ["of a date, each part", { result: "2026-12-24" }, "24.12.2026", "result"],
    ["of a date that differs", { result: "2026-12-24" }, "2026-12-25", undefined],
    ["from nowhere", { task: "a", result: [1, 2], args: { x: 3 } }, "77.7", undefined]
  ]
  for (const [what, told, number, source] of cases) {
    it(`${what}: ${number} ${source === undefined ? "has no source" : `is from ${source}`}`, () =>
      assert.strictEqual(sourceOf(told, number), source))
  }

  it("is derived from pairs only while there are few", () => {
    const many = Array.from({ length: 13 }, (_, at) => 1000 + at * 7)
    assert.strictEqual(sourceOf({ result: many.slice(0, 12) }, "1003.5"), undefined)
    assert.strictEqual(sourceOf({ result: many.slice(0, 2) }, "2007"), "derived")
    assert.strictEqual(sourceOf({ result: [...many, 5, 77] }, "1084 and"), "result")
    assert.strictEqual(sourceOf({ result: { a: many, b: 3.3 } }, "3300"), undefined)
  })

  it("is found in a value however deep, and the record says when it was cut", () => {
    let deep: unknown = 4711
    for (let at = 0; at < 100_000; at++) deep = [deep]
    assert.strictEqual(sourceOf({ result: deep }, "4711"), "result")
    const sources = new NumberSources()
    sources.value(
      "result",
      Array.from({ length: 1_000_001 }, (_, at) => at)
    )
    assert.isTrue(sources.cut)
  })
})
