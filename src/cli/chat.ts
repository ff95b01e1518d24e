/**
 * `writ chat`: messages and answers in one session of a model. At a terminal with a line editor (`ChatPerson`); elsewhere
 * each line of standard input is a message (`ChatLines`). Everything that can be checked is checked before a model is opened.
 */
import * as Console from "effect/Console"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Effect from "effect/Effect"
import { streamAll } from "../effects/Phases.ts"
import type { RunOptions } from "../effects/Run.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { load, type RawSettings } from "../effects/Settings.ts"
import { none } from "../tools/Registry.ts"
import type * as ChatInput from "./ChatInput.ts"
import * as ChatLines from "./ChatLines.ts"
import * as ChatPerson from "./ChatPerson.ts"
import { ChatSession } from "./ChatSession.ts"
import { ChatView } from "./ChatView.ts"
import { fitted } from "./Columns.ts"
import { inJson, usage } from "./Ending.ts"
import { newRunId, runOptionsOf, type Showing, servicesOf, sessionOptionsOf } from "./Execute.ts"
import { chosenBy } from "./ModelNames.ts"
import { count, inline } from "./Printable.ts"
import { type About, check, engineOf } from "./run.ts"
import * as Screen from "./Screen.ts"
import { wrapped } from "./WordWrap.ts"

export interface ChatFlags extends Showing {
  readonly settings: RawSettings
}

/** Everything a chat is made of, checked. */
const prepared = Effect.fnUntraced(function* (flags: ChatFlags, screen: Screen.Screen) {
  const resolved = yield* load(flags.settings)
  const checked = yield* check(resolved)
  const { settings } = checked
  if (settings.runDir !== undefined) {
    return yield* usage("runDir: each message of a chat is a run in a directory of its own; leave it out")
  }
  if (settings.route === "auto") {
    const why = "a chat is one conversation, and all of it either has tools or has none"
    return yield* usage(`--route auto: ${why}; name task (the default) or chat`)
  }
  // Which model is meant is settled before anything is made for it.
  if (settings.script === undefined && settings.engineUrl === undefined) yield* chosenBy(settings)
  yield* RunDirectory.check(RunDirectory.standard(yield* newRunId))
  const about: About = yield* engineOf(settings, flags, screen)
  return { ...about, ...checked, ...(settings.route === "chat" ? { registry: none } : {}) }
})

type Prepared = Effect.Success<ReturnType<typeof prepared>>

/** An answer is shown while it is written, whatever else a turn could have become. */
const optionsOf = (job: Prepared): RunOptions => {
  const options = runOptionsOf(job)
  const talk = job.settings.route === "chat" ? ({ phase: "chat" } as const) : {}
  return { ...options, ...talk, phases: { ...streamAll, ...options.phases } }
}

const header = ({ model, notice, registry }: Prepared, { columns, line, paint }: Screen.Screen): void => {
  line(paint.bold(fitted(inline(model.title), columns)))
  if (notice !== undefined) line(paint.yellow(wrapped(notice, columns)))
  const tools = registry.tools.length === 0 ? "no tools" : count(registry.tools.length, "tool")
  line(paint.dim(fitted(`${tools}, /help lists commands, Ctrl-D leaves`, columns)))
  line()
}

/** How often the time that has passed is shown anew. */
const tickMillis = 1_000

/** With a person at a terminal. */
const talk = Effect.fnUntraced(function* (
  job: Prepared,
  flags: ChatFlags,
  screen: Screen.Screen,
  input: ChatInput.ChatInput
) {
  const view = new ChatView(screen, { quiet: flags.quiet, directions: screen.directions })
  if (!flags.quiet) header(job, screen)
  if (job.engine._tag === "File") view.starting()
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(tickMillis), Effect.sync(view.tick))))
  yield* Effect.addFinalizer(() => Effect.sync(() => screen.progress("")))
  const { registry, settings } = job
  const conversation = Effect.gen(function* () {
    const chat = yield* ChatSession.open(sessionOptionsOf(job))
    view.loaded()
    yield* RunDirectory.prepareHome
    const options = optionsOf(job)
    yield* ChatPerson.converse({ chat, registry, screen, input, view, options, approve: settings.approve })
  })
  yield* Effect.provide(Effect.scoped(conversation), yield* servicesOf(job, RunDirectory.standard, view.loading))
})

/** From standard input to standard output. */
const pass = Effect.fnUntraced(function* (job: Prepared, flags: ChatFlags, screen: Screen.Screen) {
  if (!flags.json && job.notice !== undefined) yield* Console.error(job.notice)
  const { model, registry, settings } = job
  const about = { model: model.title, codec: model.codec, tools: registry.tools.map(({ name }) => name) }
  const { approve } = settings
  const conversation = Effect.gen(function* () {
    const chat = yield* ChatSession.open(sessionOptionsOf(job))
    yield* RunDirectory.prepareHome
    const options = optionsOf(job)
    yield* ChatLines.answerLines({ chat, registry, screen, options, approve, about, json: flags.json })
  })
  yield* Effect.provide(Effect.scoped(conversation), yield* servicesOf(job, RunDirectory.standard, undefined))
})

export const chat = (flags: ChatFlags) =>
  Effect.gen(function* () {
    const { canPrompt } = yield* TerminalCapabilities
    const screen = yield* Screen.make(flags.color)
    const input = canPrompt && !flags.json ? yield* ChatPerson.editor(screen) : undefined
    const job = yield* prepared(flags, screen)
    yield* input === undefined ? pass(job, flags, screen) : talk(job, flags, screen, input)
  }).pipe(Effect.scoped, inJson(flags.json))
