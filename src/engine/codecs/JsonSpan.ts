/**
 * Finds where a JSON object or array ends as its text arrives, by following brackets and strings only. It accepts more
 * than JSON: its text is then judged by `JsonText`, once. It stops early at `<` outside a string, which no JSON contains
 * and which is where a tag would begin.
 */
import type { Window } from "./Window.ts"

export class JsonSpan {
  /** Everything read so far. */
  text = ""
  #depth = 0
  #inString = false
  #escaped = false

  /** Reads on. `"end"`: balanced; `"stray"`: stopped behind a `<` that cannot belong; `"more"`: the window is used up. */
  read(window: Window): "end" | "stray" | "more" {
    const text = window.text
    const from = window.at
    let at = from
    let result: "end" | "stray" | "more" = "more"
    while (at < text.length && result === "more") result = this.#take(text.charCodeAt(at++))
    window.at = at
    if (at > from) this.text += text.slice(from, at)
    return result
  }

  #take(unit: number): "end" | "stray" | "more" {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false
      else if (unit === 0x5c) this.#escaped = true
      else if (unit === 0x22) this.#inString = false
      return "more"
    }
    if (unit === 0x22) this.#inString = true
    else if (unit === 0x7b || unit === 0x5b) this.#depth += 1
    else if (unit === 0x7d || unit === 0x5d) {
      this.#depth -= 1
      if (this.#depth <= 0) return "end"
    } else if (unit === 0x3c) return "stray"
    return "more"
  }
}
