/**
 * Conversation files on disk: read whole, written whole or not at all. Under its name a file is always the old one or the new
 * one, also when the process is killed or the machine stops. Keeps no lock: a run that saves through a `keeper` writes over nothing
 * that somebody else has written meanwhile.
 */
import {
  chmodSync,
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync
} from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { reasonOf } from "../../actors/Directories.ts"
import { isAlive } from "../../tools/Alive.ts"
import type { Conversation } from "./Conversation.ts"
import { ConversationError } from "./ConversationError.ts"
import * as ConversationText from "./ConversationText.ts"

/** Public under this name; inside it is `tools/Alive.ts`. */
export { isAlive }

/** Reads and parses a file. */
export const load = (path: string): Effect.Effect<Conversation, ConversationError> =>
  Effect.flatMap(textAt(path), (text) => Effect.fromResult(ConversationText.parse(text, path)))

/**
 * Writes a file so that it holds this conversation. Documents that are in it already keep their bytes; a file that holds
 * the conversation as it is is not written at all. A link is followed, the file's permissions stay.
 */
export const save = (path: string, conversation: Conversation): Effect.Effect<void, ConversationError> =>
  Effect.asVoid(saveOver(path, conversation, () => true))

const meanwhile =
  "it was changed while it was run, in an editor or by another run, and stays as it is now: run it again to go on from that"

/**
 * How one run saves a file that held `loaded`: as `save` does, if the file still says what this run has read or written last. What
 * somebody else wrote into it meanwhile is not written over. Comments may change, and a file that is gone is written anew.
 */
export const keeper = (
  path: string,
  loaded: Conversation
): ((now: Conversation) => Effect.Effect<void, ConversationError>) => {
  let last = loaded
  let text: string | undefined
  const isOurs = (before: string): boolean =>
    before === text ||
    Result.match(ConversationText.parse(before, path), {
      onFailure: () => false,
      onSuccess: (found) =>
        Result.getOrUndefined(ConversationText.write(found)) === Result.getOrUndefined(ConversationText.write(last))
    })
  return (now) =>
    Effect.map(saveOver(path, now, isOurs), (written) => {
      last = now
      text = written
    })
}

/** `mayReplace` is asked about the text that is there, if there is one. What the file holds then. */
const saveOver = (
  path: string,
  conversation: Conversation,
  mayReplace: (before: string) => boolean
): Effect.Effect<string, ConversationError> =>
  Effect.suspend(() => {
    const target = targetOf(path)
    const before = textIfThere(target)
    if (before !== undefined && !mayReplace(before))
      return Effect.fail(new ConversationError({ path, place: "", reason: meanwhile }))
    const text =
      before === undefined
        ? ConversationText.write(conversation, path)
        : ConversationText.update(before, conversation, path)
    if (Result.isFailure(text)) return Effect.fail(text.failure)
    if (text.success === before) return Effect.succeed(before)
    return Effect.as(
      attempt(path, "written", () => replace(target, text.success)),
      text.success
    )
  })

const attempt = <A>(path: string, done: string, act: () => A): Effect.Effect<A, ConversationError> =>
  Effect.try({
    try: act,
    catch: (cause) => new ConversationError({ path, place: "", reason: `it cannot be ${done}: ${reasonOf(cause)}` })
  })

const decoded = (bytes: Uint8Array): string => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)

const textAt = (path: string): Effect.Effect<string, ConversationError> =>
  Effect.flatMap(
    attempt(path, "read", () => readFileSync(path)),
    (bytes) =>
      Effect.mapError(
        Effect.try({ try: () => decoded(bytes), catch: () => "it is not UTF-8 text" }),
        (reason) => new ConversationError({ path, place: "", reason })
      )
  )

/** What is there now; a file that is no UTF-8 text is as good as none. */
const textIfThere = (target: string): string | undefined => {
  try {
    return decoded(readFileSync(target))
  } catch {
    return undefined
  }
}

const targetOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

/** Like `.default.yaml.4711.tmp`: hidden, no conversation by its name, and telling whose it is. */
const temporaryOf = (target: string): string => join(dirname(target), `.${basename(target)}.${process.pid}.tmp`)

/** Directories whose leftovers this process has looked for. */
const swept = new Set<string>()

/** Removes what processes left behind that were killed while they wrote. */
const sweep = (directory: string): void => {
  if (swept.has(directory)) return
  swept.add(directory)
  for (const name of readdirSync(directory)) {
    const found = /^\..+\.ya?ml\.(\d+)\.tmp$/.exec(name)
    if (found !== null && !isAlive(Number(found[1]))) rmSync(join(directory, name), { force: true })
  }
}

const writeAll = (fd: number, text: string): void => {
  const bytes = Buffer.from(text)
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
}

/** A rename is on disk when its directory is. Some systems cannot sync a directory; there the rename itself is all there is. */
export const syncDirectory = (directory: string): void => {
  let fd: number
  try {
    fd = openSync(directory, "r")
  } catch {
    return
  }
  try {
    fsyncSync(fd)
  } catch (error) {
    if (!["EINVAL", "EPERM", "ENOTSUP"].includes(String((error as NodeJS.ErrnoException).code))) throw error
  } finally {
    closeSync(fd)
  }
}

const replace = (target: string, text: string): void => {
  const directory = dirname(target)
  sweep(directory)
  const temporary = temporaryOf(target)
  try {
    const fd = openSync(temporary, "w", 0o666)
    try {
      writeAll(fd, text)
      const before = statSync(target, { throwIfNoEntry: false })
      if (before !== undefined) chmodSync(temporary, before.mode & 0o7777)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, target)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  syncDirectory(directory)
}

/** Writes a text to a file that is not there yet, so that it is on disk when this returns. For files that are put in place together. */
export const create = (path: string, text: string): void => {
  const fd = openSync(path, "wx")
  try {
    writeAll(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
