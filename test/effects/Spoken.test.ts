import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { handOverText, mayBecome, spokenIn } from "../../src/effects/Spoken.ts"

const both = { clarify: true, handOver: true }

describe("a question that is said", () => {
  const questions: ReadonlyArray<readonly [text: string, question: string]> = [
    ['CLARIFY("Which city?")', "Which city?"],
    ['\n  CLARIFY("Which city?")\n', "Which city?"],
    ['CLARIFY( "Which city?" )', "Which city?"],
    ['<final>CLARIFY("Which city?")</final>', "Which city?"],
    ['CLARIFY("The \\"main\\" one, or C:\\\\temp?")', 'The "main" one, or C:\\temp?'],
    ['CLARIFY("Which?\\n1. a\\n2. b")', "Which?\n1. a\n2. b"],
    ['CLARIFY("Which?\n1. a\n2. b")', "Which?\n1. a\n2. b"],
    ['CLARIFY("أي مدينة؟ \\u2014 (a)")', "أي مدينة؟ — (a)"]
  ]
  for (const [text, question] of questions) {
    it(`is ${JSON.stringify(text)}`, () => {
      assert.deepStrictEqual(spokenIn(text, both), { _tag: "Clarify", question })
    })
  }

  const others: ReadonlyArray<string> = [
    'I will ask: CLARIFY("Which?")',
    'CLARIFY("Which?") is how one asks.',
    '`CLARIFY("Which?")`',
    '```\nCLARIFY("Which?")\n```',
    '> CLARIFY("Which?")',
    '"CLARIFY(\\"Which?\\")"',
    'clarify("Which?")',
    "CLARIFY",
    ""
  ]
  for (const text of others) {
    it(`is not ${JSON.stringify(text)}`, () => {
      assert.isUndefined(spokenIn(text, both))
    })
  }

  for (const text of [
    'CLARIFY("a?") CLARIFY("b?")',
    'CLARIFY("a?")\nCLARIFY("b?")',
    "CLARIFY()",
    'CLARIFY("")',
    "CLARIFY(which?)",
    'CLARIFY("a", "b")',
    'CLARIFY("the "main" one?")'
  ]) {
    it(`was meant, and is none, in ${JSON.stringify(text)}`, () => {
      assert.strictEqual(spokenIn(text, both)?._tag, "Broken")
    })
  }

  it("is a text like any other where nobody listens", () => {
    assert.isUndefined(spokenIn('CLARIFY("Which?")', { clarify: false, handOver: true }))
    assert.isUndefined(spokenIn(handOverText, { clarify: true, handOver: false }))
  })

  it("comes back as it was asked, whatever it holds", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1 }).filter((one) => one.trim() !== "")
    fc.assert(
      fc.property(text, (question) => {
        const said = spokenIn(`CLARIFY(${JSON.stringify(question)})`, both)
        assert.deepStrictEqual(said, { _tag: "Clarify", question: question.trim() })
      })
    )
  })
})

describe("what may still become an action", () => {
  const actions = [
    handOverText,
    `<final>${handOverText}</final>`,
    'CLARIFY("Which (one)?")',
    '<final>CLARIFY("?")</final>'
  ]

  it("is every beginning of one", () => {
    for (const action of actions) {
      for (let end = 1; end <= action.length; end++)
        assert.isTrue(mayBecome(action.slice(0, end), both), action.slice(0, end))
    }
  })

  it("is space in front of one, but not nothing: reasoning is not held back by what may follow it", () => {
    for (const space of [" ", "\n\n", "\t"]) assert.isTrue(mayBecome(space, both), JSON.stringify(space))
    assert.isFalse(mayBecome("", both))
    assert.isFalse(mayBecome("\n", { clarify: false, handOver: false }))
  })

  it("is no longer a text that has begun otherwise", () => {
    for (const text of ["Hello", "TASKS", "<b>", "CLARITY", "The TASK()", `${handOverText} and more words`]) {
      assert.isFalse(mayBecome(text, both), text)
    }
    assert.isFalse(mayBecome("CLARIFY(", { clarify: false, handOver: true }))
  })

  it("holds back nothing that is not an action in the end, beyond its first words", () => {
    const texts = fc.string().map((text) => `It is ${text}`)
    fc.assert(fc.property(texts, (text) => !mayBecome(text, both)))
  })
})
