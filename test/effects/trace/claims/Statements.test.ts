import { assert, describe, it } from "@effect/vitest"
import { sentencesOf } from "../../../../src/effects/trace/claims/AnswerText.ts"
import { statementsOf } from "../../../../src/effects/trace/claims/Statements.ts"

const verbs = new Map(["saved", "sent", "read", "written"].map((verb) => [verb, true]))

const stated = (text: string): ReadonlyArray<string> =>
  [...sentencesOf(text)].flatMap((one) => statementsOf(one, verbs)).map(({ form, verb }) => `${verb.lower} ${form}`)

describe("statementsOf", () => {
  const claims: ReadonlyArray<readonly [text: string, stated: ReadonlyArray<string>]> = [
    ["I saved it.", ["saved active"]],
    ["We have already saved it.", ["saved active"]],
    ["I've just sent it.", ["sent active"]],
    ["I read a.md, computed the mean and saved it.", ["read active", "saved active"]],
    ["The file was saved and sent.", ["saved passive", "sent passive"]],
    ["The report has been saved.", ["saved passive"]],
    ["Saved the report.", ["saved fragment"]],
    ["✅ Successfully saved to a.md", ["saved fragment"]],
    ["Saved: a.md", ["saved fragment"]],
    ["Email sent.", ["sent fragment"]],
    ["Summary: saved the file", ["saved fragment"]],
    ["I could not read it, but I saved the rest.", ["saved active"]],
    ["I did not wait and saved it.", ["saved active"]],
    ["No errors occurred and the file was saved.", ["saved passive"]],
    ["I have not only read it but also saved it.", ["read active", "saved fragment"]],
    ["No, I saved it.", ["saved active"]],
    ["I've saved it, anything else?", ["saved active"]],
    ["If you need it, I saved a copy.", ["saved active"]],
    ["It was sent by email.", ["sent passive"]],
    ["The assistant saved it.", ["saved active"]],
    ["I confirmed that it was saved.", ["saved passive"]],
    ["I made sure it was saved.", ["saved passive"]],
    ["Confirmed that it was saved.", ["saved passive"]]
  ]
  for (const [text, expected] of claims) {
    it(`sees what is stated: ${text}`, () => assert.deepStrictEqual(stated(text), expected))
  }

  const none: ReadonlyArray<readonly [why: string, ...texts: ReadonlyArray<string>]> = [
    [
      "negation",
      "I have not saved it.",
      "I never saved it.",
      "It wasn't saved.",
      "Nothing was saved.",
      "No file was saved.",
      "I saved nothing.",
      "I was unable to read it.",
      "I cannot confirm that it was saved.",
      "I have not read or sent it.",
      "It was neither read nor sent."
    ],
    [
      "plan",
      "I will save it.",
      "I am going to have it saved.",
      "It will be saved.",
      "It should be sent.",
      "I'll read it."
    ],
    [
      "condition",
      "If I had saved it, you would see it.",
      "Once saved, it can be read.",
      "Unless it was saved, wait.",
      "Check that it was saved."
    ],
    ["could have been", "I would have saved it.", "I could have sent it.", "It might have been sent."],
    ["question", "Have I saved it?", "Did I say that I saved it?", "What was sent?"],
    ["quotation", 'It says "I saved it".', "> I saved it", "`I saved it`", "```\nI saved it\n```"],
    ["somebody's word", "Ann wrote that it was sent.", "She confirmed the mail was sent.", "He replied it was saved."],
    ["request", "Make sure it was sent.", "Please make sure that it was saved."],
    ["report", "The log says that it was saved.", "According to the log the file was saved."],
    ["somebody else", "You saved it.", "Ann saved it.", "It was written by Ann.", "You know what Ann had sent."],
    ["another time", "I saved it in the previous session.", "It was sent yesterday.", "It was saved in 2019."],
    ["habit", "It is sent every Monday.", "When you push, it is sent."],
    ["label", "Saved searches", "Sent: 2021-03-04", "3 saved items"]
  ]
  for (const [why, ...texts] of none) {
    it(`sees no statement in a ${why}`, () => {
      for (const text of texts) assert.deepStrictEqual(stated(text), [], text)
    })
  }
})
