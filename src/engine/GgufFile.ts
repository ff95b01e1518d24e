/**
 * What a GGUF file says about itself, read and checked here, in bounds, before native code sees the file: magic, version,
 * sizes of everything in the header, and that every tensor lies inside the file. Does not load the inference library.
 */
import * as Crypto from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import { EngineError } from "./EngineError.ts"
import { Damaged, GgufReader, type GgufValue } from "./GgufReader.ts"
import { fileTypeName, tensorBytes } from "./GgufTypes.ts"

/** A special token the file names. */
export interface GgufToken {
  readonly id: number
  readonly text: string
}

/** The checked header of a model file. */
export interface GgufInfo {
  readonly path: string
  /** `general.name`, or the file's base name. */
  readonly name: string
  readonly version: number
  readonly fileBytes: number
  /** Bytes of metadata and tensor list, and their SHA-256 in hex: the file's cheap identity together with `fileBytes`. */
  readonly headerBytes: number
  readonly headerHash: string
  readonly tensorCount: number
  readonly architecture?: string
  /** Tokens the model was trained to hold. */
  readonly contextTokens?: number
  /** The chat template's text. */
  readonly template?: string
  /** `tokenizer.ggml.model`, such as `gpt2` or `llama`. */
  readonly tokenizer?: string
  readonly vocabularySize?: number
  readonly specialTokens: Readonly<Record<string, GgufToken>>
  /** The common name of `general.file_type`, such as `Q4_K_M`. */
  readonly quantization?: string
}

/** Bounds of a header. The largest published models stay two orders of magnitude below. */
const maxMetadata = 100_000
const maxTensors = 1_000_000
const defaultAlignment = 32

const special = ["bos", "eos", "eot", "eom", "unknown", "padding", "separator"]

/** Reads and checks the header. Fails with `missing_file` or `bad_file`; takes milliseconds, also for large vocabularies. */
export const read = (path: string): Effect.Effect<GgufInfo, EngineError> =>
  Effect.try({
    try: () => readSync(path),
    catch: (cause) => toError(path, cause)
  })

/** SHA-256 of the whole file in hex. About 200 MB a second; interruptible. */
export const sha256 = (path: string): Effect.Effect<string, EngineError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const hash = Crypto.createHash("sha256")
      for await (const chunk of Fs.createReadStream(path, { highWaterMark: 1 << 20, signal })) hash.update(chunk)
      return hash.digest("hex")
    },
    catch: (cause) => toError(path, cause)
  })

const toError = (path: string, cause: unknown): EngineError => {
  if (cause instanceof EngineError) return cause
  const name = Path.basename(path)
  if (cause instanceof Damaged) {
    return new EngineError({
      reason: "bad_file",
      message: `${name} cannot be used as a model: ${cause.message}. Download it again, or choose another GGUF file (${path}).`
    })
  }
  const code = (cause as { readonly code?: unknown }).code
  if (code === "ENOENT" || code === "ENOTDIR") {
    return new EngineError({
      reason: "missing_file",
      message: `There is no model file ${name} at ${path}. Check the path, or download the model first.`
    })
  }
  return new EngineError({
    reason: "bad_file",
    message: `The model file ${name} cannot be read (${path}): ${String(code ?? cause)}. Check its permissions.`,
    cause
  })
}

const readSync = (path: string): GgufInfo => {
  const stat = Fs.statSync(path)
  if (stat.isDirectory()) {
    throw new EngineError({
      reason: "missing_file",
      message: `${Path.basename(path)} is a directory, not a model file. Name the .gguf file inside ${path}.`
    })
  }
  if (!stat.isFile()) throw new Damaged("it is not a regular file")
  const fd = Fs.openSync(path, "r")
  try {
    return header(path, fd, stat.size)
  } finally {
    Fs.closeSync(fd)
  }
}

const header = (path: string, fd: number, fileBytes: number): GgufInfo => {
  const reader = new GgufReader(fd, fileBytes)
  const version = preamble(reader)
  const tensorCount = reader.count(maxTensors, "tensors")
  const metadataCount = reader.count(maxMetadata, "metadata entries")
  const metadata = new Map<string, GgufValue>()
  for (let i = 0; i < metadataCount; i++) {
    const key = reader.text(65_535, "a metadata key")
    metadata.set(key, reader.value(reader.u32(), key))
  }
  const endOfTensors = tensors(reader, tensorCount)
  const headerBytes = reader.position
  const alignment = number(metadata.get("general.alignment")) ?? defaultAlignment
  if (alignment === 0 || (alignment & (alignment - 1)) !== 0)
    throw new Damaged(`its alignment ${alignment} is not a power of two`)
  const dataStart = Math.ceil(headerBytes / alignment) * alignment
  endOfTensors(dataStart)

  const architecture = text(metadata.get("general.architecture"))
  const contextTokens = number(metadata.get(`${architecture}.context_length`))
  const template = text(metadata.get("tokenizer.chat_template"))
  const tokenizer = text(metadata.get("tokenizer.ggml.model"))
  const quantization = fileTypeName(number(metadata.get("general.file_type")))
  const vocabulary = metadata.get("tokenizer.ggml.tokens")
  return {
    path,
    name: text(metadata.get("general.name")) ?? Path.basename(path),
    version,
    fileBytes,
    headerBytes,
    headerHash: reader.hash(headerBytes),
    tensorCount,
    ...(architecture === undefined ? {} : { architecture }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(template === undefined ? {} : { template }),
    ...(tokenizer === undefined ? {} : { tokenizer }),
    ...(vocabulary?.kind === "array" ? { vocabularySize: vocabulary.length } : {}),
    ...(quantization === undefined ? {} : { quantization }),
    specialTokens: specialTokens(reader, metadata, vocabulary)
  }
}

const preamble = (reader: GgufReader): number => {
  if (reader.size === 0) throw new Damaged("it is empty")
  if (reader.size < 4 || reader.magic() !== "GGUF")
    throw new Damaged("it is not a GGUF file (the first four bytes are not GGUF)")
  const version = reader.u32()
  if (version === 2 || version === 3) return version
  const swapped = version > 0xffff
  throw new Damaged(
    swapped
      ? "it is a big-endian GGUF file, which is not supported"
      : `it has GGUF version ${version}; versions 2 and 3 are supported`
  )
}

/** Walks the tensor list and returns the check that all of them end inside the file once the data's start is known. */
const tensors = (reader: GgufReader, count: number): ((dataStart: number) => void) => {
  let last = { name: "", end: 0 }
  for (let i = 0; i < count; i++) {
    const name = reader.text(4096, "a tensor's name")
    const rank = reader.u32()
    if (rank > 4) throw new Damaged(`tensor ${name} has ${rank} dimensions, at most 4 are allowed`)
    let elements = 1
    for (let d = 0; d < rank; d++) elements *= reader.u64()
    const bytes = tensorBytes(reader.u32(), elements)
    const end = reader.u64() + bytes
    if (!Number.isSafeInteger(end)) throw new Damaged(`tensor ${name} has an absurd size`)
    if (end > last.end) last = { name, end }
  }
  return (dataStart) => {
    const missing = dataStart + last.end - reader.size
    if (missing > 0) throw new Damaged(`it is cut short: ${missing} bytes of tensor data are missing (${last.name})`)
  }
}

const specialTokens = (
  reader: GgufReader,
  metadata: ReadonlyMap<string, GgufValue>,
  vocabulary: GgufValue | undefined
): Record<string, GgufToken> => {
  const out: Record<string, GgufToken> = {}
  if (vocabulary?.kind !== "array") return out
  for (const name of special) {
    const id = number(metadata.get(`tokenizer.ggml.${name}_token_id`))
    const spelled = id === undefined ? undefined : reader.arrayText(vocabulary, id)
    if (id !== undefined && spelled !== undefined) out[name] = { id, text: spelled }
  }
  return out
}

const text = (value: GgufValue | undefined): string | undefined => (value?.kind === "text" ? value.text : undefined)
const number = (value: GgufValue | undefined): number | undefined =>
  value?.kind === "number" ? value.number : undefined
