/** A conversation as data: what a transcript holds and a codec renders. */
import type { JsonObject } from "../tools/JsonText.ts"

export interface MessageCall {
  readonly name: string
  readonly arguments: JsonObject
  readonly id?: string
}

export type Message =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string }
  | {
      readonly role: "assistant"
      readonly content: string
      readonly reasoning?: string
      readonly calls?: ReadonlyArray<MessageCall>
    }
  | { readonly role: "tool"; readonly name: string; readonly content: string; readonly id?: string }
