/**
 * What the inference actor and its thread say to each other: typed requests, streamed replies, typed failures. Nothing in
 * it depends on threads: the same protocol runs over a thread's port and a child process's channel. One model per connection.
 */

import * as Rpc from "effect/rpc/Rpc"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as Schema from "effect/Schema"
import { EngineError } from "./EngineError.ts"

const Count = Schema.Int
const Tokens = Schema.Array(Schema.Int)
const SegmentSchema = Schema.Struct({ kind: Schema.Literals(["control", "text"]), text: Schema.String })
const Segments = Schema.Array(SegmentSchema)
const SpanSchema = Schema.Struct({ start: Count, end: Count })
const session = { session: Count }

/** `LlamaOptions`. */
const Options = Schema.Struct({
  modelPath: Schema.String,
  contextTokens: Schema.optionalKey(Count),
  sequences: Schema.optionalKey(Count),
  threads: Schema.optionalKey(Count),
  gpu: Schema.optionalKey(Schema.Literals(["auto", "metal", "cuda", "vulkan", false])),
  chunkTokens: Schema.optionalKey(Count),
  memoryBytes: Schema.optionalKey(Schema.Finite),
  stallSeconds: Schema.optionalKey(Schema.Finite),
  verify: Schema.optionalKey(Schema.Boolean),
  reuse: Schema.optionalKey(Schema.Literals(["measured", "always", "never"])),
  flashAttention: Schema.optionalKey(Schema.Union([Schema.Literal("auto"), Schema.Boolean])),
  cacheType: Schema.optionalKey(Schema.Literals(["f16", "q8_0", "q4_0"])),
  lora: Schema.optionalKey(
    Schema.Array(Schema.Struct({ path: Schema.String, scale: Schema.optionalKey(Schema.Finite) }))
  )
})

/** `EmbeddingOptions`. */
const EmbeddingOptions = Schema.Struct({
  modelPath: Schema.String,
  contextTokens: Schema.optionalKey(Count),
  threads: Schema.optionalKey(Count),
  gpu: Options.fields.gpu
})

/** `ModelIdentity`. */
const Identity = Schema.Struct({
  engine: Schema.Literals(["llama", "scripted", "language-model", "openai"]),
  name: Schema.String,
  contextTokens: Count,
  template: Schema.optionalKey(Schema.String),
  architecture: Schema.optionalKey(Schema.String),
  quantization: Schema.optionalKey(Schema.String),
  fileBytes: Schema.optionalKey(Count),
  build: Schema.optionalKey(Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])))
})

/** `CallGrammar`. */
const Grammar = Schema.Struct({
  openers: Schema.Array(
    Schema.Struct({
      text: Schema.String,
      root: Schema.String,
      atStart: Schema.optionalKey(Schema.Boolean),
      atLine: Schema.optionalKey(Schema.Boolean),
      depth: Schema.optionalKey(Count)
    })
  ),
  rules: Schema.String,
  marks: Schema.Record(Schema.String, Schema.String),
  closer: Schema.String,
  bracket: Schema.optionalKey(Schema.Literals(["{", "["])),
  quote: Schema.optionalKey(Schema.String),
  start: Schema.optionalKey(
    Schema.Struct({
      root: Schema.String,
      heads: Schema.optionalKey(Schema.Array(Schema.Struct({ text: Schema.String, depth: Schema.optionalKey(Count) }))),
      toEnd: Schema.optionalKey(Schema.Boolean)
    })
  ),
  reasoning: Schema.optionalKey(Schema.Struct({ open: Schema.String, close: Schema.String, opened: Schema.Boolean }))
})

const PrioritySchema = Schema.Literals([1, 2, 3, 4, 5])

/** `TurnRequest`. */
const Request = Schema.Struct({
  maxTokens: Count,
  sampling: Schema.Struct({
    temperature: Schema.Finite,
    topK: Schema.Finite,
    topP: Schema.Finite,
    seed: Schema.Finite
  }),
  stops: Schema.Array(Schema.String),
  ends: Schema.optionalKey(Schema.Array(Schema.String)),
  grammar: Schema.optionalKey(Grammar),
  live: Schema.optionalKey(Schema.Boolean),
  priority: Schema.optionalKey(PrioritySchema),
  thinking: Schema.optionalKey(
    Schema.Struct({
      open: Schema.String,
      close: Schema.String,
      anywhere: Schema.optionalKey(Schema.Boolean),
      closing: Schema.optionalKey(Schema.String),
      again: Schema.optionalKey(Schema.String),
      opened: Schema.Boolean,
      maxTokens: Count
    })
  )
})

/** `GenerationEvent`. */
const Event = Schema.Union([
  Schema.Struct({ _tag: Schema.tag("Prefill"), done: Count, total: Count }),
  Schema.Struct({ _tag: Schema.tag("Piece"), text: Schema.String, tokens: Tokens }),
  Schema.Struct({
    _tag: Schema.tag("End"),
    reason: Schema.Literals(["eog", "stop", "length"]),
    usage: Schema.Struct({
      prefillTokens: Count,
      outputTokens: Count,
      prefillMillis: Schema.Finite,
      decodeMillis: Schema.Finite
    }),
    thinkClosed: Schema.optionalKey(Count)
  })
])

/** Where the log has grown, and the tokens it has grown by: whoever keeps them can fill another session with them. */
const Grown = Schema.Struct({ span: SpanSchema, tokens: Tokens })
export type Grown = typeof Grown.Type

/** The last one says what was committed. */
const CommitEvent = Schema.Union([
  Schema.Struct({ _tag: Schema.tag("Prefill"), done: Count, total: Count }),
  Schema.Struct({ _tag: Schema.tag("Committed"), ...Grown.fields })
])
export type CommitEvent = typeof CommitEvent.Type

/** `share` is from 0 to 1. The last one says who answers. */
const OpenEvent = Schema.Union([
  Schema.Struct({ _tag: Schema.tag("Loading"), share: Schema.Finite }),
  Schema.Struct({ _tag: Schema.tag("Opened"), identity: Identity })
])
export type OpenEvent = typeof OpenEvent.Type

/** Counts since the model was opened. */
export const Stats = Schema.Struct({ evaluatedTokens: Count, reusedTokens: Count, erasedTokens: Count, turns: Count })
export type Stats = typeof Stats.Type

/** Cache and pending token of a session, for verification. */
export const Snapshot = Schema.Struct({ kv: Tokens, pending: Tokens })
export type Snapshot = typeof Snapshot.Type

/** `Log`. */
const LogSchema = Schema.Struct({ label: Schema.String, tokens: Tokens, boundaries: Schema.Array(Count) })

const error = EngineError

/**
 * The protocol. `Revert` is `LlamaSession.revert`: what a caller sends after it was interrupted; `Restore` fills a new session
 * with the log of one that died with its engine. A model is opened for turns (`Open`) or for vectors (`EmbedOpen`, then only
 * `Embed`).
 */
export const Wire = RpcGroup.make(
  Rpc.make("Open", { payload: Options, success: OpenEvent, error, stream: true }),
  Rpc.make("Tokenize", { payload: { segments: Segments }, success: Tokens, error }),
  Rpc.make("Stats", { success: Stats, error }),
  Rpc.make("SessionOpen", { success: Count, error }),
  Rpc.make("SessionClose", { payload: session, error }),
  Rpc.make("Restore", { payload: { ...session, tokens: Tokens, boundaries: Schema.Array(Count) }, error }),
  Rpc.make("Commit", {
    payload: { ...session, segments: Segments, priority: Schema.optionalKey(PrioritySchema) },
    success: CommitEvent,
    error,
    stream: true
  }),
  Rpc.make("Turn", {
    payload: { ...session, opening: Segments, request: Request },
    success: Event,
    error,
    stream: true
  }),
  Rpc.make("Keep", { payload: { ...session, closing: Segments }, success: Grown, error }),
  Rpc.make("Rollback", { payload: session, error }),
  Rpc.make("Rewind", { payload: { ...session, length: Count }, error }),
  Rpc.make("Save", { payload: { ...session, path: Schema.String, label: Schema.String }, success: Count, error }),
  Rpc.make("Load", { payload: { ...session, path: Schema.String }, success: LogSchema, error }),
  Rpc.make("Revert", { payload: { ...session, length: Count }, error }),
  Rpc.make("Measure", { payload: { ...session, segments: Segments }, success: Count, error }),
  Rpc.make("Length", { payload: session, success: Count, error }),
  Rpc.make("Snapshot", { payload: session, success: Snapshot, error }),
  Rpc.make("EmbedOpen", { payload: EmbeddingOptions, success: OpenEvent, error, stream: true }),
  Rpc.make("Embed", {
    payload: { texts: Schema.Array(Schema.String) },
    success: Schema.Array(Schema.Array(Schema.Finite)),
    error
  })
)
