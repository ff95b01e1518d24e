/**
 * What `script` and `program` share (R-AILLY-26): where the program may lie, what it is told, what it may know of the
 * environment, and what its end means for the assertion.
 */
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { isAbsolute, join, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { look } from "../../actors/Directories.ts"
import { finalText } from "./assertions/FinalText.ts"
import type { Around } from "./Kind.ts"
import * as Sandbox from "./Sandbox.ts"
import type { Subject } from "./Subject.ts"
import { cutTo, deferred, errored, fail, malformed, pass, quote, type Verdict } from "./Verdict.ts"

/** The question the answer is to: the last user message before it. */
const questionVariable = "WRIT_QUESTION"

/** One variable may have so many bytes on Linux, its name included. */
const mostQuestion = 128 * 1024 - 64

export const Source = Schema.Union([
  Schema.Struct({ contents: Schema.NonEmptyString }),
  Schema.Struct({ path: Schema.NonEmptyString })
])

export const PassEnv = Schema.Array(Schema.String.check(Schema.isPattern(/^[A-Za-z_][A-Za-z0-9_]*$/)))

/** A program given by its text, as a file of its own that goes with the scope. */
export const temporary = (name: string, contents: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-eval-"))),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
    ),
    (directory) => {
      const path = join(directory, name)
      writeFileSync(path, contents)
      chmodSync(path, 0o700)
      return path
    }
  )

/** The real path of a file inside the root, or why it is none. */
export const confined = (root: string, path: string): string | Verdict => {
  if (isAbsolute(path)) return malformed(`${path} is absolute: paths are relative to the project`)
  const full = resolve(root, path)
  if (look(full)._tag !== "File") return malformed(`there is no file ${path} in the project`)
  const inside = relative(realpathSync(root), realpathSync(full))
  return inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)
    ? malformed(`${path} leads out of the project`)
    : realpathSync(full)
}

/** Replaces the values that were passed on, longest first, by the names they came from. */
const redacting = (env: Around["env"], names: ReadonlyArray<string>): ((text: string) => string) => {
  const secrets = names
    .flatMap((name) => (env[name] === undefined || env[name] === "" ? [] : [[name, env[name]] as const]))
    .sort(([, a], [, b]) => b.length - a.length)
  return (text) => secrets.reduce((left, [name, value]) => left.replaceAll(value, `[${name}]`), text)
}

const environmentOf = (around: Around, names: ReadonlyArray<string>, question: string): Record<string, string> => ({
  ...Object.fromEntries(
    [...Sandbox.allowed, ...names].flatMap((name) =>
      around.env[name] === undefined ? [] : [[name, around.env[name]] as const]
    )
  ),
  [questionVariable]: question
})

const verdictOf = (ran: Sandbox.Ran, redact: (text: string) => string, millis: number): Verdict => {
  switch (ran._tag) {
    case "NotStarted":
      return errored(`it cannot be started: ${redact(ran.reason)}`)
    case "Timeout":
      return errored(`it took longer than ${millis} ms and was ended`)
    case "Signal":
      return errored(`it was ended by ${ran.signal}`)
    case "Over":
      return errored(`it wrote more than ${Sandbox.mostBytes} bytes to ${ran.stream} and was ended`)
    case "Exit": {
      if (ran.code === 0) return pass
      const [said, complained] = [redact(ran.stdout).trim(), redact(ran.stderr).trim()]
      if (said !== "") return fail(said)
      if (complained !== "") return errored(`exit code ${ran.code}: ${complained}`)
      return fail(`exit code ${ran.code}, without a word`)
    }
  }
}

export interface Started {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

export interface Asked {
  readonly class: string
  readonly passEnv: ReadonlyArray<string> | undefined
  /** What is started; its files go with the scope. */
  readonly start: Effect.Effect<Started | Verdict, never, Scope.Scope>
}

/** Characters of a script's output that a judge is told. */
const mostTold = 20_000

/** Runs it over the final answer and says what that came to. */
export const decide = (asked: Asked, subject: Subject, around: Around): Verdict | Effect.Effect<Verdict> => {
  const { spawner, scriptMillis: millis = Sandbox.mostMillis } = around
  const names = asked.passEnv ?? []
  if (names.includes(questionVariable)) return malformed(`pass_env: ${questionVariable} is what the question comes in`)
  if (spawner === undefined) return deferred("programs cannot be started here")
  const text = finalText(subject)
  if (typeof text !== "string") return text
  const question = subject.question()
  const bytes = Buffer.byteLength(question)
  if (bytes > mostQuestion) return errored(`the question (${bytes} bytes) does not fit into a variable`)
  if (question.includes("\0")) return errored(`the question ${quote(question)} holds a NUL, which no variable can`)
  const redact = redacting(around.env, names)
  return Effect.scoped(
    Effect.gen(function* () {
      const started = yield* asked.start
      if ("outcome" in started) return started
      const env = environmentOf(around, names, question)
      const ran = yield* Sandbox.run(spawner, { ...started, cwd: around.root, env, input: text, millis })
      if (ran._tag === "Exit" && ran.stdout !== "") {
        subject.outputs.push({ class: asked.class, text: cutTo(redact(ran.stdout), mostTold) })
      }
      return verdictOf(ran, redact, millis)
    })
  )
}
