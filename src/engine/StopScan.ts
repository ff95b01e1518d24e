/** Ends a text at its first stop, where a server or a provider does not. */

/** `said + piece` up to the end of the first stop that ends in the piece; `undefined`: none does. */
export const upToStop = (said: string, piece: string, stops: ReadonlyArray<string>): string | undefined => {
  let all = said + piece
  let stopped = false
  for (const stop of stops) {
    const at = all.indexOf(stop, Math.max(0, said.length - stop.length))
    if (at < 0) continue
    all = all.slice(0, at + stop.length)
    stopped = true
  }
  return stopped ? all : undefined
}
