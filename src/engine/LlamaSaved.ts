/**
 * A session on disk: the state that native code writes, and beside it a text file with the token log, its boundaries, and what
 * it was evaluated with. Everything is checked before native code sees any of it; what does not fit is no state but a reason
 * to evaluate again. Says nothing about when saving pays.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { EngineError } from "./EngineError.ts"
import type { Evaluated, LlamaSequence, Mark } from "./LlamaSequence.ts"
import { fingerprint, isSound } from "./LlamaState.ts"

/** What decides whether a state is of use: the model's file, and everything about its evaluation that changes the numbers. */
export type Facts = Readonly<Record<string, string | number | boolean>>

/** A session as it was saved. */
export interface Saved extends Evaluated {
  readonly path: string
  readonly label: string
  /** Known and not yet evaluated: the log's end. */
  readonly pending: ReadonlyArray<number>
  readonly boundaries: ReadonlyArray<Mark>
}

interface Content {
  readonly format: 1
  readonly label: string
  readonly facts: Facts
  readonly state: { readonly bytes: number; readonly sha256: string }
  readonly log: ReadonlyArray<number>
  readonly fed: number
  readonly starts: ReadonlyArray<number>
  readonly boundaries: ReadonlyArray<readonly [length: number, fed: number]>
}

const besideOf = (path: string): string => `${path}.json`
const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")
const unusable = (path: string, why: string, cause?: unknown) =>
  new EngineError({
    reason: "bad_file",
    message: `The saved state ${path} is of no use: ${why}.`,
    ...(cause === undefined ? {} : { cause })
  })

/** Removes a saved session, or what there is of one. */
const remove = (path: string): void => {
  for (const file of [path, besideOf(path)]) Fs.rmSync(file, { force: true })
}

/** Writes both files and returns their bytes. Failed, there is neither. */
export const write = async (
  sequence: LlamaSequence,
  { boundaries, facts, label, path }: Pick<Saved, "boundaries" | "label" | "path"> & { readonly facts: Facts }
): Promise<number> => {
  remove(path)
  try {
    const { starts } = sequence.evaluated()
    const { fed } = sequence.here
    await sequence.save(path)
    Fs.chmodSync(path, 0o600)
    const content: Content = {
      format: 1,
      label,
      facts,
      state: await fingerprint(path),
      log: sequence.last(sequence.length),
      fed,
      starts,
      boundaries: boundaries.map((mark) => [mark.length, mark.fed])
    }
    const body = JSON.stringify(content)
    const text = `${hashOf(body)}\n${body}\n`
    Fs.writeFileSync(besideOf(path), text, { mode: 0o600 })
    return content.state.bytes + Buffer.byteLength(text)
  } catch (cause) {
    remove(path)
    throw cause instanceof EngineError ? cause : unusable(path, "it could not be written", cause)
  }
}

const contentOf = (path: string): Content => {
  let text: string
  if (!Fs.existsSync(path) && !Fs.existsSync(besideOf(path))) {
    throw new EngineError({ reason: "missing_file", message: `There is no saved state ${path}.` })
  }
  try {
    text = Fs.readFileSync(besideOf(path), "utf8")
  } catch (cause) {
    throw unusable(path, "it is not there, or not whole", cause)
  }
  const [hash, body] = text.split("\n", 2)
  if (body === undefined || hashOf(body) !== hash) throw unusable(path, "what stands beside it was changed")
  const content = JSON.parse(body) as Content
  if (content.format !== 1) throw unusable(path, "it is of another version")
  return content
}

/** Puts a saved session into an empty sequence. Failed, the sequence is empty. */
export const put = async (sequence: LlamaSequence, saved: Saved): Promise<void> => {
  try {
    await sequence.load(saved.path, saved, saved.tokens.length, saved.pending)
  } catch (cause) {
    throw cause instanceof EngineError ? cause : unusable(saved.path, "the library does not take it", cause)
  }
}

/** Reads what is beside a state and looks at the state itself. Fails `bad_file`, with what is wrong. */
export const read = async (path: string, facts: Facts): Promise<Saved> => {
  const content = contentOf(path)
  const other = [...new Set([...Object.keys(facts), ...Object.keys(content.facts)])].find(
    (key) => facts[key] !== content.facts[key]
  )
  if (other !== undefined) throw unusable(path, `${other} is another one`)
  if (!(await isSound({ path, ...content.state }))) throw unusable(path, "its length or hash is not what it was")
  const { boundaries, fed, label, log, starts } = content
  return {
    path,
    label,
    tokens: log.slice(0, fed),
    pending: log.slice(fed),
    starts,
    boundaries: boundaries.map(([length, at]) => ({ length, fed: at }))
  }
}
