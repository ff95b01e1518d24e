/**
 * The cells of a matrix: which model answers which prompt under which policy, and how often. A cell is named by what decides its
 * outcome, so that equal names mean equal work.
 */
import { hash } from "node:crypto"
import { canonical, type Json, type JsonObject } from "../../../tools/JsonText.ts"
import type { Conversation } from "../../conversation/Conversation.ts"
import { version } from "../../Version.ts"
import type { Named } from "../Matching.ts"

/** A model, or a script that plays one. */
export interface Contestant {
  /** For people; no two have the same. */
  readonly name: string
  /** What tells its content from that of any other: the hash of a file. */
  readonly identity: string
}

/** A conversation with blank slots. `group` is its assembly, or the category of an external suite. */
export interface Prompt extends Named {
  readonly group: string
  /** Its name among all prompts: `group/name` where names occur twice. */
  readonly label: string
}

/** How the contestants are run. */
export interface Policy {
  readonly name: string
  /** Everything about the run that may change what the model says, as plain data. */
  readonly decides: JsonObject
}

export interface Cell {
  readonly contestant: Contestant
  readonly policy: Policy
  readonly prompt: Prompt
  /** From 0. */
  readonly repeat: number
  readonly seed: number
  /** SHA-256 in hex of all that decides what the cell comes to, the suite excepted. */
  readonly key: string
}

export const sha256 = (text: string): string => hash("sha256", text)

/** Repeats have seeds of their own, one after the other. */
const seedOf = (seed: number, repeat: number): number => (seed + repeat) % 2 ** 32

const asJson = (conversation: Conversation): Json => JSON.parse(JSON.stringify(conversation)) as Json

/** Also of the version: another one may run the same conversation otherwise. */
const keyOf = (cell: Omit<Cell, "key">, tools: string): string =>
  sha256(
    canonical({
      version,
      contestant: cell.contestant.identity,
      policy: cell.policy.decides,
      prompt: { name: cell.prompt.name, conversation: asJson(cell.prompt.conversation) },
      repeat: cell.repeat,
      seed: cell.seed,
      tools
    })
  )

export interface Matrix {
  readonly contestants: ReadonlyArray<Contestant>
  readonly policies: ReadonlyArray<Policy>
  readonly prompts: ReadonlyArray<Prompt>
  /** At least 1. */
  readonly repeats: number
  readonly seed: number
  /** The hash of the tools that can run. */
  readonly tools: string
}

/** Contestant by contestant, policy by policy, repeat by repeat: one model has to be in memory at a time. */
export const cellsOf = ({ contestants, policies, prompts, repeats, seed, tools }: Matrix): ReadonlyArray<Cell> =>
  contestants.flatMap((contestant) =>
    policies.flatMap((policy) =>
      Array.from({ length: repeats }, (_, repeat) => repeat).flatMap((repeat) =>
        prompts.map((prompt) => {
          const cell = { contestant, policy, prompt, repeat, seed: seedOf(seed, repeat) }
          return { ...cell, key: keyOf(cell, tools) }
        })
      )
    )
  )

/** Labels that are told apart by their group where they have to be. */
export const labelled = (prompts: ReadonlyArray<Omit<Prompt, "label">>): ReadonlyArray<Prompt> => {
  const counts = new Map<string, number>()
  for (const { name } of prompts) counts.set(name, (counts.get(name) ?? 0) + 1)
  return prompts.map((prompt) => ({
    ...prompt,
    label: counts.get(prompt.name)! > 1 ? `${prompt.group}/${prompt.name}` : prompt.name
  }))
}
