/**
 * Calls and replies between this process and a tool process: frames on a pipe, plain JSON with bytes beside it. The reader
 * trusts nothing that arrives: not its length, not its form. What a frame may say is not known here.
 *
 *   u32 bytes of JSON | u32 bytes of data | JSON in UTF-8 | data
 */

import { maxResultDepth } from "./JsonResult.ts"
import { isWithinDepth, type Json, type JsonObject } from "./JsonText.ts"
import {
  type FailureKind,
  failureKinds,
  type ProducedArtifact,
  type StagedStatement,
  type StagedValue
} from "./ToolCall.ts"
import type { WorkerReply } from "./WorkerAnswer.ts"

export interface Frame {
  readonly json: Json
  readonly data: Uint8Array
}

const headerBytes = 8

// As they were before any code of a tool ran beside them.
const { parse, stringify } = JSON

export const encodeFrame = (json: Json, data: ReadonlyArray<Uint8Array> = []): Buffer => {
  const text = Buffer.from(stringify(json))
  const header = Buffer.alloc(headerBytes)
  header.writeUInt32BE(text.byteLength, 0)
  header.writeUInt32BE(
    data.reduce((size, bytes) => size + bytes.byteLength, 0),
    4
  )
  return Buffer.concat([header, text, ...data])
}

/** Puts frames together from pieces. Throws where one is longer than allowed, before it is there, or is not JSON. */
export class FrameReader {
  readonly #maxBytes: number
  #pieces: Array<Uint8Array> = []
  #size = 0
  #wanted = headerBytes

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  push(piece: Uint8Array): ReadonlyArray<Frame> {
    this.#pieces.push(piece)
    this.#size += piece.byteLength
    const frames: Array<Frame> = []
    // Looked at only when enough is there, so that a long frame in small pieces is not copied again and again.
    while (this.#size >= this.#wanted) {
      const held = Buffer.concat(this.#pieces)
      const length = held.readUInt32BE(0)
      const end = headerBytes + length + held.readUInt32BE(4)
      if (end > this.#maxBytes) throw new Error(`a message of ${end} bytes, at most ${this.#maxBytes} are allowed`)
      const whole = held.byteLength >= end
      if (whole) {
        const text = held.toString("utf8", headerBytes, headerBytes + length)
        frames.push({ json: parse(text) as Json, data: held.subarray(headerBytes + length, end) })
      }
      const rest = whole ? held.subarray(end) : held
      this.#pieces = [rest]
      this.#size = rest.byteLength
      this.#wanted = whole ? headerBytes : end
    }
    return frames
  }
}

const sentValue = (value: StagedValue): Json => {
  if (typeof value === "bigint") return { bigint: String(value) }
  return value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value
}

const receivedValue = (value: Json): StagedValue => {
  if (value === null || typeof value !== "object") return value
  const { base64, bigint } = value as JsonObject
  return typeof bigint === "string" ? BigInt(bigint) : Uint8Array.from(Buffer.from(String(base64), "base64"))
}

const describe = ({ bytes, mediaType, name }: ProducedArtifact): JsonObject => ({
  name,
  mediaType,
  size: bytes.byteLength
})

/** A reply, with the number of the call it answers. */
export const encodeReply = (id: number, { outcome, spent }: WorkerReply): Buffer => {
  const head = { id, spent: spent === true }
  if (outcome._tag === "Failed") {
    const { raw, ...failure } = outcome
    const kept = raw === undefined ? [] : [raw]
    const json = { ...head, outcome: failure as unknown as Json, artifacts: kept.map(describe) }
    return encodeFrame(
      json,
      kept.map(({ bytes }) => bytes)
    )
  }
  const { artifacts, staged = [], ...plain } = outcome
  return encodeFrame(
    {
      ...head,
      outcome: plain,
      artifacts: artifacts.map(describe),
      staged: staged.map(({ parameters, ...rest }) => ({ ...rest, parameters: parameters.map(sentValue) }))
    },
    artifacts.map(({ bytes }) => bytes)
  )
}

const wrong = (): never => {
  throw new Error("a message that is no reply")
}

const objectOf = (json: Json | undefined): JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json) ? (json as JsonObject) : wrong()
const listOf = (json: Json | undefined): ReadonlyArray<Json> => (Array.isArray(json) ? json : wrong())
const textOf = (json: Json | undefined): string => (typeof json === "string" ? json : wrong())
const countOf = (json: Json | undefined): number => (typeof json === "number" && json >= 0 ? json : wrong())

const artifactsOf = (json: Json | undefined, data: Uint8Array): ReadonlyArray<ProducedArtifact> => {
  let at = 0
  const artifacts = listOf(json).map((item) => {
    const { mediaType, name, size } = objectOf(item)
    const bytes = Uint8Array.from(data.subarray(at, at + countOf(size)))
    at += countOf(size)
    return { name: textOf(name), mediaType: textOf(mediaType), bytes }
  })
  return at === data.byteLength ? artifacts : wrong()
}

const stagedOf = (json: Json | undefined): ReadonlyArray<StagedStatement> =>
  listOf(json).map((item) => {
    const { parameters, rows, sql } = objectOf(item)
    const bound = { sql: textOf(sql), parameters: listOf(parameters).map(receivedValue) }
    return rows === undefined ? bound : { ...bound, rows: countOf(rows) }
  })

const failureOf = (outcome: JsonObject, kept: ReadonlyArray<ProducedArtifact>): WorkerReply["outcome"] => {
  const { effect, errors, hint, kind, millis } = outcome
  const [raw, ...more] = kept
  if (more.length > 0) return wrong()
  if (!failureKinds.includes(kind as FailureKind)) return wrong()
  if (effect !== "none" && effect !== "present" && effect !== "unknown") return wrong()
  const said = listOf(errors).map((error) => {
    const { path, reason } = objectOf(error)
    // A problem of the arguments says more; it is passed on as it came.
    return { ...objectOf(error), path: textOf(path), reason: textOf(reason) }
  })
  const extra = { ...(hint === undefined ? {} : { hint: textOf(hint) }), ...(raw === undefined ? {} : { raw }) }
  return { _tag: "Failed", kind: kind as FailureKind, errors: said, effect, millis: countOf(millis), ...extra }
}

/** Most UTF-16 units of a failure's words, all of them together. */
const maxWords = 1024 * 1024
/** A reply is so much deeper than the result in it. */
const aroundResult = 2

/** The reply in a frame. Throws where it is none. */
export const decodeReply = ({ data, json }: Frame): WorkerReply & { readonly id: number } => {
  // Whatever is done with it afterwards calls itself for each level.
  if (!isWithinDepth(json, maxResultDepth + aroundResult)) return wrong()
  const reply = objectOf(json)
  const outcome = objectOf(reply.outcome)
  const head = { id: countOf(reply.id), ...(reply.spent === true ? { spent: true as const } : {}) }
  if (outcome._tag === "Failed" && stringify(outcome).length > maxWords) return wrong()
  if (outcome._tag === "Failed") return { ...head, outcome: failureOf(outcome, artifactsOf(reply.artifacts, data)) }
  if (outcome._tag !== "Succeeded" || outcome.result === undefined) return wrong()
  const staged = stagedOf(reply.staged)
  const done = {
    result: outcome.result,
    artifacts: artifactsOf(reply.artifacts, data),
    millis: countOf(outcome.millis)
  }
  return { ...head, outcome: { _tag: "Succeeded", ...done, ...(staged.length === 0 ? {} : { staged }) } }
}
