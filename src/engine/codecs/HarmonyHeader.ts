/** The header of a harmony message: who speaks, to whom, on which channel. Strict: what is not in the format is not guessed. */

export interface HarmonyHeader {
  readonly role: string
  readonly recipient: string | undefined
  readonly channel: string | undefined
}

/**
 * Reads what stands between `<|start|>` and `<|message|>`, or `undefined` where that is no header. In the first message of
 * a turn the prompt has written the start and the role already.
 */
export const readHeader = (text: string, first: boolean): HarmonyHeader | undefined => {
  const [before, behind, ...more] = text.split("<|channel|>")
  if (more.length > 0) return undefined
  const speaker = /^\s*(\S+?)?(?:\s+to=(\S+)|^to=(\S+))?\s*$/.exec(before!)
  if (speaker === null) return undefined
  const role = speaker[1] ?? (first ? "assistant" : undefined)
  if (role === undefined || role.startsWith("to=")) return first ? fromRecipient(before!, behind) : undefined
  return withChannel(role, speaker[2] ?? speaker[3], behind)
}

/** ` to=NAME` right after the role that the prompt wrote. */
const fromRecipient = (before: string, behind: string | undefined): HarmonyHeader | undefined => {
  const recipient = /^\s*to=(\S+)\s*$/.exec(before)?.[1]
  return recipient === undefined ? undefined : withChannel("assistant", recipient, behind)
}

const withChannel = (
  role: string,
  recipient: string | undefined,
  behind: string | undefined
): HarmonyHeader | undefined => {
  if (behind === undefined) return { role, recipient, channel: undefined }
  const found = /^(analysis|commentary|final)(?:\s+to=(\S+?))?(?:\s*<\|constrain\|>\s*\w+|\s+\w+)?\s*$/.exec(behind)
  if (found === null || (found[2] !== undefined && recipient !== undefined)) return undefined
  return { role, recipient: recipient ?? found[2], channel: found[1] }
}
