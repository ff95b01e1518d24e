/** Which conversations a case is about (R-AILLY-25): by the file's stem, by its binding, or all. */
import type { Conversation } from "../conversation/Conversation.ts"
import type { Case } from "./Suite.ts"

/** A conversation and what it is called: the file's name without its ending. */
export interface Named {
  readonly name: string
  readonly conversation: Conversation
}

export type Match =
  | { readonly _tag: "Some"; readonly conversations: ReadonlyArray<Named> }
  /** No file has the case's name. */
  | { readonly _tag: "Missing"; readonly name: string }
  /** No binding has what the case asks for. */
  | { readonly _tag: "None"; readonly why: string }

const binds = ({ meta }: Conversation, when: Readonly<Record<string, string>>): boolean =>
  Object.entries(when).every(
    ([axis, value]) => meta.binding !== undefined && Object.hasOwn(meta.binding, axis) && meta.binding[axis] === value
  )

export const match = ({ name, when }: Case, all: ReadonlyArray<Named>): Match => {
  const called = name === undefined ? all : all.filter((one) => one.name === name)
  if (name !== undefined && called.length === 0) return { _tag: "Missing", name }
  const bound = when === undefined ? called : called.filter(({ conversation }) => binds(conversation, when))
  if (bound.length > 0) return { _tag: "Some", conversations: bound }
  return {
    _tag: "None",
    why: `no binding has ${Object.entries(when ?? {})
      .map(([axis, value]) => `${axis}: ${value}`)
      .join(", ")}`
  }
}
