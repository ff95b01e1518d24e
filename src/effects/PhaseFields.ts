/** Settings about what a run does turn by turn: talk or work, who sees what is written, questions that are said. */
import { streamAll } from "./Phases.ts"
import { choice, type Field, onOff } from "./SettingForms.ts"

export interface PhaseWords {
  /** Does the run talk or work? `auto`: the model decides. */
  readonly route: "auto" | "chat" | "task"
  /** `all`: turns that may become calls too. */
  readonly stream: "answers" | "all"
  readonly clarify: boolean
}

const clarify: Field<boolean> = {
  description: 'Take a turn that is CLARIFY("…") and nothing else for a question to the user (default on)',
  form: "on|off",
  choices: ["on", "off"],
  read: onOff,
  fallback: true
}

export const phase: { readonly [K in keyof PhaseWords]: Field<PhaseWords[K]> } = {
  route: choice(
    "Work on the task, talk without tools, or let the model decide which (default task)",
    ["auto", "chat", "task"],
    "task"
  ),
  stream: choice(
    "What is shown while it is written: answers only, or every turn (default answers)",
    ["answers", "all"],
    "answers"
  ),
  clarify
}

/** The settings as the loop takes them. */
export const phaseOptionsOf = ({ clarify, stream }: PhaseWords) => ({
  clarify,
  ...(stream === "all" ? { phases: streamAll } : {})
})
