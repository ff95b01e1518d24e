/**
 * A prompt as segments. `control` segments are ours and are tokenised with special-token parsing on; `text` segments come
 * from people, files, tools and models and can never become a control token, whatever they contain.
 */
export interface Segment {
  readonly kind: "control" | "text"
  readonly text: string
}

export const control = (text: string): Segment => ({ kind: "control", text })
export const text = (value: string): Segment => ({ kind: "text", text: value })

/** The characters of a prompt, as a template would have rendered them. */
export const flatten = (segments: ReadonlyArray<Segment>): string => {
  let out = ""
  for (const segment of segments) out += segment.text
  return out
}

/** Half-open range of token positions in a session's context. */
export interface Span {
  readonly start: number
  readonly end: number
}
