import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Conversation } from "../../../src/effects/conversation/Conversation.ts"
import * as ConversationFile from "../../../src/effects/conversation/ConversationFile.ts"
import * as ConversationText from "../../../src/effects/conversation/ConversationText.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-conversation-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const saying = (content: string): Conversation => ({
  meta: { model: "noop" },
  session: [{ role: "user", content }, { role: "assistant" }]
})

const refusal = <A>(effect: Effect.Effect<A, { readonly message: string }>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

/** Tool-free files as other writers and people write them. */
const toolFree: Record<string, string> = {
  "as a serialiser writes it": `---
model: noop
assembly: greet
binding:
  tone: formal
---
role: system
content: "You are brief.\\n"
---
role: user
content: |-
  Say hello
  to the reader.
cache: true
---
role: assistant
content:
- type: text
  text: Hello.
trace:
  span_id: noop-0
  model: noop
  tokens:
    input: 0
    output: 0
  latency_ms: 0
  events: []
`,
  "by hand, with comments and in one line":
    '# greetings\n---\n{ model: noop }   # the scripted engine\n--- # first\n{ role: user,\n  content: "hi" }\n---\nrole: assistant\n',
  "from another system": "---\r\nmodel: noop\r\n---\r\nrole: user\r\ncontent: hi\r\n---\r\nrole: assistant\r\n",
  "folded, ended and without a last newline":
    "---\nmodel: noop\n---\nrole: user\ncontent: >\n  a\n  b\n...\n---\nrole: assistant",
  "as we write it": ConversationText.emit(saying("a\n\n b\n"))
}

describe("a conversation file", () => {
  it.live("comes back as it was saved", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "default.yaml")
      yield* ConversationFile.save(path, saying("hello\nthere"))
      assert.deepStrictEqual(yield* ConversationFile.load(path), saying("hello\nthere"))
      assert.strictEqual(readFileSync(path, "utf8"), ConversationText.emit(saying("hello\nthere")))
    })
  )

  for (const [name, text] of Object.entries(toolFree)) {
    it.live(`without tools keeps its bytes when it is loaded and saved: ${name}`, () =>
      Effect.gen(function* () {
        const path = join(yield* directory, "default.yaml")
        writeFileSync(path, text)
        yield* ConversationFile.save(path, yield* ConversationFile.load(path))
        assert.strictEqual(readFileSync(path, "utf8"), text)
      })
    )
  }

  it.live("is not written when it holds the conversation already", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "default.yaml")
      writeFileSync(path, toolFree["as a serialiser writes it"]!)
      utimesSync(path, 1000, 1000)
      const before = statSync(path, { bigint: true })
      yield* ConversationFile.save(path, yield* ConversationFile.load(path))
      const after = statSync(path, { bigint: true })
      assert.deepStrictEqual([after.ino, after.mtimeNs, after.ctimeNs], [before.ino, before.mtimeNs, before.ctimeNs])
    })
  )

  it.live("keeps what it said in the bytes it said it, when more is said", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "default.yaml")
      const text = toolFree["by hand, with comments and in one line"]!
      writeFileSync(path, text)
      const { meta, session } = yield* ConversationFile.load(path)
      yield* ConversationFile.save(path, { meta, session: [session[0]!, { role: "assistant", content: "Hi." }] })
      assert.strictEqual(readFileSync(path, "utf8"), `${text}content: Hi.\n`)
    })
  )

  it.live("is not written over by a run when somebody else changed it meanwhile", () =>
    Effect.gen(function* () {
      const path = join(mkdtempSync(join(tmpdir(), "writ-file-")), "talk.yaml")
      const blank = saying("What is 2 plus 3?")
      yield* ConversationFile.save(path, blank)
      const save = ConversationFile.keeper(path, yield* ConversationFile.load(path))
      const first = { ...blank, session: [...blank.session.slice(0, 1), { role: "assistant" as const, content: "5" }] }
      yield* save(first)
      const second = { ...first, session: [...first.session, { role: "user" as const, content: "Thanks." }] }

      const edited = readFileSync(path, "utf8").replace("2 plus 3", "2 plus 4")
      writeFileSync(path, edited)
      assert.include(yield* refusal(save(second)), "it was changed while it was run")
      assert.strictEqual(readFileSync(path, "utf8"), edited)

      // Comments say nothing to a model, and stay; what is gone cannot be written over.
      writeFileSync(path, `# mine\n${edited.replace("2 plus 4", "2 plus 3")}`)
      yield* save(second)
      assert.match(readFileSync(path, "utf8"), /^# mine\n[\s\S]*Thanks\.\n$/)
      rmSync(path)
      yield* save(first)
      assert.deepStrictEqual(yield* ConversationFile.load(path), first)
      writeFileSync(path, "half a fi")
      assert.include(yield* refusal(save(second)), "it was changed while it was run")
    })
  )

  it.live("two runs of one file: the second to write keeps what the first wrote", () =>
    Effect.gen(function* () {
      const path = join(mkdtempSync(join(tmpdir(), "writ-file-")), "talk.yaml")
      const blank = saying("Which?")
      yield* ConversationFile.save(path, blank)
      const answered = (content: string): Conversation => ({
        ...blank,
        session: [...blank.session.slice(0, 1), { role: "assistant", content }]
      })
      const [one, other] = [ConversationFile.keeper(path, blank), ConversationFile.keeper(path, blank)]
      yield* one(answered("this"))
      assert.include(yield* refusal(other(answered("that"))), "by another run")
      assert.deepStrictEqual(yield* ConversationFile.load(path), answered("this"))
    })
  )

  it.live("is a new file each time it is written, so that whoever reads the old one reads it to its end", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "default.yaml")
      yield* ConversationFile.save(path, saying("one"))
      const before = statSync(path).ino
      yield* ConversationFile.save(path, saying("two"))
      assert.notStrictEqual(statSync(path).ino, before)
      assert.deepStrictEqual(yield* ConversationFile.load(path), saying("two"))
    })
  )

  it.live("leaves nothing beside it", () =>
    Effect.gen(function* () {
      const root = yield* directory
      yield* ConversationFile.save(join(root, "default.yaml"), saying("one"))
      yield* ConversationFile.save(join(root, "default.yaml"), saying("two"))
      assert.deepStrictEqual(readdirSync(root), ["default.yaml"])
    })
  )

  it.live("stays as it is when what should be saved has no text", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const path = join(root, "default.yaml")
      yield* ConversationFile.save(path, saying("one"))
      const said = yield* refusal(ConversationFile.save(path, saying("half \ud800")))
      assert.strictEqual(
        said,
        `${path}: message 0, content: lone surrogate: half of a character cannot be kept in a file`
      )
      assert.deepStrictEqual(yield* ConversationFile.load(path), saying("one"))
      assert.deepStrictEqual(readdirSync(root), ["default.yaml"])
    })
  )

  it.live("says so when it cannot be put in place, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const root = yield* directory
      mkdirSync(join(root, "taken.yaml", "inside"), { recursive: true })
      assert.match(
        yield* refusal(ConversationFile.save(join(root, "taken.yaml"), saying("a"))),
        /taken\.yaml: it cannot be written: /
      )
      assert.match(
        yield* refusal(ConversationFile.save(join(root, "none", "a.yaml"), saying("a"))),
        /a\.yaml: it cannot be written: ENOENT/
      )
      assert.deepStrictEqual(readdirSync(root), ["taken.yaml"])
    })
  )

  it.live("keeps its permissions, and stays where a link leads", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const path = join(root, "real.yaml")
      yield* ConversationFile.save(path, saying("one"))
      chmodSync(path, 0o640)
      symlinkSync("real.yaml", join(root, "link.yaml"))
      yield* ConversationFile.save(join(root, "link.yaml"), saying("two"))
      assert.strictEqual(statSync(path).mode & 0o777, 0o640)
      assert.isTrue(lstatSync(join(root, "link.yaml")).isSymbolicLink())
      assert.deepStrictEqual(yield* ConversationFile.load(path), saying("two"))
    })
  )

  it.live("is saved after removing what killed processes left, and not what others are writing", () =>
    Effect.gen(function* () {
      const root = yield* directory
      // No process has this id: Linux stops at 2^22.
      writeFileSync(join(root, ".default.yaml.2147483646.tmp"), "half")
      writeFileSync(join(root, `.other.yaml.${process.ppid}.tmp`), "half")
      writeFileSync(join(root, ".mine.tmp"), "not ours")
      yield* ConversationFile.save(join(root, "default.yaml"), saying("one"))
      assert.isFalse(existsSync(join(root, ".default.yaml.2147483646.tmp")))
      assert.deepStrictEqual(readdirSync(root).sort(), [".mine.tmp", `.other.yaml.${process.ppid}.tmp`, "default.yaml"])
    })
  )

  it.live("is refused by name where it cannot be read", () =>
    Effect.gen(function* () {
      const root = yield* directory
      writeFileSync(join(root, "bytes.yaml"), Uint8Array.of(0x2d, 0xff, 0xfe))
      writeFileSync(join(root, "wrong.yaml"), "---\nmodel: noop\n---\nrole: nobody\n")
      assert.match(
        yield* refusal(ConversationFile.load(join(root, "none.yaml"))),
        /none\.yaml: it cannot be read: ENOENT/
      )
      assert.match(yield* refusal(ConversationFile.load(root)), /: it cannot be read: EISDIR/)
      assert.strictEqual(
        yield* refusal(ConversationFile.load(join(root, "bytes.yaml"))),
        `${join(root, "bytes.yaml")}: it is not UTF-8 text`
      )
      assert.match(
        yield* refusal(ConversationFile.load(join(root, "wrong.yaml"))),
        /wrong\.yaml: message 0 \(line 4\), role: unknown role/
      )
    })
  )
})
