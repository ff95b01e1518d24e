/**
 * What a turn is for, and what that means for it: reasoning, how long it may be, how it is sampled, who sees it while it is
 * written. The run decides which phase a turn is in, from what it follows; the model never does. Pure.
 */

/** `classify`: chat or task? `chat`: talk without tools. `plan`: the first turn of a task. `tool`: a turn after results. `report`: an answer. */
export const phaseNames = ["classify", "chat", "plan", "tool", "report"] as const
export type Phase = (typeof phaseNames)[number]

export interface PhaseSettings {
  /** Reasoning; `undefined` is the family's own way. */
  readonly thinking: boolean | undefined
  /** Tokens a turn may generate; never more than the run's limit. */
  readonly outputTokens: number
  /** Tokens its reasoning may take; never more than the run's limit. */
  readonly thinkTokens: number
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  /** Text is shown piece by piece. Otherwise the whole of it is shown once it is known to be an answer. */
  readonly stream: boolean
}

export type PhaseOverrides = { readonly [P in Phase]?: Partial<PhaseSettings> }
export type PhaseTable = { readonly [P in Phase]: PhaseSettings }

/** What the run has for all its turns. */
export interface RunWide {
  readonly thinking: boolean | undefined
  readonly limits: { readonly outputTokens: number; readonly thinkTokens: number }
  readonly sampling: { readonly temperature: number; readonly topK: number; readonly topP: number }
}

/** Most tokens that a decision between two words may take. */
export const classifyTokens = 64

/** Text is shown as it is written in turns that may become calls, too. What turns out to be none is taken back. */
export const streamAll: PhaseOverrides = { plan: { stream: true }, tool: { stream: true } }

const standard = ({ thinking }: RunWide): PhaseOverrides => ({
  classify: { thinking: false, outputTokens: classifyTokens, temperature: 0, stream: false },
  chat: { thinking: thinking ?? false, stream: true },
  plan: { stream: false },
  tool: { stream: false },
  report: { stream: true }
})

/** The settings of every phase of a run. */
export const tableOf = (wide: RunWide, said: PhaseOverrides = {}): PhaseTable => {
  const own = standard(wide)
  const { limits, sampling, thinking } = wide
  const settle = (phase: Phase): PhaseSettings => {
    // A decision is two words that nobody sees: no reasoning goes before it.
    const fixed = phase === "classify" ? { thinking: false, stream: false } : {}
    const all = { thinking, stream: false, ...limits, ...sampling, ...own[phase], ...said[phase], ...fixed }
    const most = phase === "classify" ? Math.min(classifyTokens, limits.outputTokens) : limits.outputTokens
    return {
      thinking: all.thinking,
      outputTokens: Math.min(all.outputTokens, most),
      thinkTokens: Math.min(all.thinkTokens, limits.thinkTokens),
      temperature: all.temperature,
      topK: all.topK,
      topP: all.topP,
      stream: all.stream
    }
  }
  return Object.fromEntries(phaseNames.map((phase) => [phase, settle(phase)])) as PhaseTable
}

/** Where a run stands before a turn. */
export interface Standing {
  /** Every turn of the run is in this phase, because the caller says so. */
  readonly forced: Phase | undefined
  /** The run talks, and has not been handed over to the task. */
  readonly chatting: boolean
  /** Calls are recognised. */
  readonly tools: boolean
  /** The turn follows results or feedback, not the user's text. */
  readonly afterAnswers: boolean
}

/**
 * The rule: without tools there is nothing to write but the answer; with tools the first turn after the user's text plans,
 * and every later one goes on. Whether it will be a call or the answer nobody knows before it is written.
 */
export const phaseOf = ({ afterAnswers, chatting, forced, tools }: Standing): Phase => {
  if (forced !== undefined) return forced
  if (chatting) return "chat"
  if (!tools) return "report"
  return afterAnswers ? "tool" : "plan"
}

const least: { readonly [K in keyof PhaseSettings]?: number } = {
  outputTokens: 1,
  thinkTokens: 1,
  temperature: 0,
  topK: 0,
  topP: 0
}

/** Why settings of phases cannot be used: phase, field and what it takes. `undefined` when they can. */
export const problemWith = (said: PhaseOverrides): string | undefined => {
  for (const [phase, settings] of Object.entries(said)) {
    if (!(phaseNames as ReadonlyArray<string>).includes(phase)) return `phases: there is no phase "${phase}"`
    for (const [name, value] of Object.entries(settings ?? {})) {
      const bound = least[name as keyof PhaseSettings]
      if (bound === undefined) continue
      if (typeof value !== "number" || !(value >= bound)) return `phases.${phase}.${name}: must be ${bound} or more`
      if (name !== "temperature" && name !== "topP" && value !== Infinity && !Number.isInteger(value)) {
        return `phases.${phase}.${name}: must be a whole number`
      }
    }
  }
  return undefined
}

/** Settings of a phase as the trace has them: `null` is the family's own way, or no limit. */
export const recorded = (settings: PhaseSettings) => ({
  thinking: settings.thinking ?? null,
  max_tokens: settings.outputTokens,
  max_think_tokens: settings.thinkTokens === Infinity ? null : settings.thinkTokens,
  temperature: settings.temperature,
  top_k: settings.topK,
  top_p: settings.topP,
  stream: settings.stream
})

export type RecordedPhase = ReturnType<typeof recorded>

/** The same back again, for a repetition. */
export const fromRecord = (phase: RecordedPhase): PhaseSettings => ({
  thinking: phase.thinking ?? undefined,
  outputTokens: phase.max_tokens,
  thinkTokens: phase.max_think_tokens ?? Infinity,
  temperature: phase.temperature,
  topK: phase.top_k,
  topP: phase.top_p,
  stream: phase.stream
})
