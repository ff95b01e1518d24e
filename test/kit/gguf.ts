/**
 * Builds small GGUF model files with random (seeded) weights in memory: a real engine run without a real model. The
 * vocabulary is 256 bytes, three control tokens and six user-defined ones.
 */

export interface GgufRecipe {
  /**
   * `llama`: plain attention. `qwen35`: three recurrent layers, then one of attention, so rollback needs checkpoints.
   * `gemma3`: layers that see only the last tokens, and every sixth one that sees all.
   */
  readonly arch?: "llama" | "qwen35" | "gemma3"
  /** What the file says about vectors: 1 mean, 2 the first token, 3 the last, 4 grades; and whether tokens see only what is before them. */
  readonly pooling?: number
  readonly causal?: boolean
  /** An architecture that the file says and its tensors are not of: no such file can be loaded. */
  readonly claims?: string
  readonly dim?: number
  readonly layers?: number
  readonly ff?: number
  readonly ctx?: number
  readonly seed?: number
  readonly vocabulary?: number
  /** Makes the end tokens and those of `controls` all but impossible, so that generation runs to its limit. */
  readonly muteEog?: boolean
  readonly version?: number
  /** A whole vocabulary instead of the bytes. */
  readonly tokenizer?: Vocabulary
  /** More control tokens, and more user-defined ones, in front of `words`. */
  readonly controls?: ReadonlyArray<string>
  readonly users?: ReadonlyArray<string>
  /** Tokens with these texts behind the others; nothing merges to them, but they can be generated. */
  readonly words?: ReadonlyArray<string>
  /** Leaves out bytes that UTF-8 never has, or only in front of certain others: what is generated is text then. */
  readonly wellFormed?: boolean
}

interface Tensor {
  readonly name: string
  readonly dims: ReadonlyArray<number>
  /** Standard deviation of random weights, or a constant for all of them. */
  readonly std?: number
  readonly constant?: number
  readonly half: boolean
}

const valueTypes = { u32: 4, i32: 5, f32: 6, bool: 7, text: 8, array: 9 } as const
type ValueType = keyof typeof valueTypes
type Entry = readonly [key: string, type: ValueType, value: unknown, element?: ValueType]

export const controlTokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
export const userTokens = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
const heads = 4
const kvHeads = 2
const alignment = 32

/** The file's bytes. A megabyte at most with the defaults; the same recipe gives the same bytes. */
export const makeGguf = (recipe: GgufRecipe = {}): Buffer => {
  const vocabulary = recipe.tokenizer ?? makeVocabulary(recipe)
  const { entries, tensors } = body(recipe, vocabulary.tokens.length)
  const head = new Writer()
  head.raw(Buffer.from("GGUF"))
  head.u32(recipe.version ?? 3)
  const metadata: ReadonlyArray<Entry> = [...entries, ...tokenizer(vocabulary)]
  head.u64(tensors.length)
  head.u64(metadata.length)
  for (const entry of metadata) head.entry(entry)
  let offset = 0
  for (const tensor of tensors) {
    head.text(tensor.name)
    head.u32(tensor.dims.length)
    for (const dim of tensor.dims) head.u64(dim)
    head.u32(tensor.half ? 1 : 0)
    head.u64(offset)
    offset += padded(count(tensor) * (tensor.half ? 2 : 4))
  }
  const parts = [pad(head.bytes())]
  const more = (recipe.controls ?? []).map((text) => vocabulary.tokens.indexOf(text))
  const muted = recipe.muteEog === true ? [256, 257, 258, ...more] : []
  for (const [index, tensor] of tensors.entries())
    parts.push(pad(weights(tensor, (recipe.seed ?? 1) * 7919 + index, muted)))
  return Buffer.concat(parts)
}

class Writer {
  readonly #parts: Array<Buffer> = []
  raw(bytes: Buffer): void {
    this.#parts.push(bytes)
  }
  u32(value: number): void {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value)
    this.raw(bytes)
  }
  u64(value: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(BigInt(value))
    this.raw(bytes)
  }
  text(value: string): void {
    const bytes = Buffer.from(value)
    this.u64(bytes.length)
    this.raw(bytes)
  }
  entry([key, type, value, element]: Entry): void {
    this.text(key)
    this.u32(valueTypes[type])
    if (type !== "array") {
      this.value(type, value)
      return
    }
    const list = value as ReadonlyArray<unknown>
    this.u32(valueTypes[element!])
    this.u64(list.length)
    for (const item of list) this.value(element!, item)
  }
  value(type: ValueType, value: unknown): void {
    const bytes = Buffer.alloc(type === "bool" ? 1 : 4)
    if (type === "text") this.text(value as string)
    else {
      if (type === "bool") bytes.writeUInt8(value === true ? 1 : 0)
      else if (type === "f32") bytes.writeFloatLE(value as number)
      else if (type === "i32") bytes.writeInt32LE(value as number)
      else bytes.writeUInt32LE(value as number)
      this.raw(bytes)
    }
  }
  bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }
}

export interface Vocabulary {
  readonly tokens: ReadonlyArray<string>
  readonly types: ReadonlyArray<number>
  readonly merges: ReadonlyArray<string>
  /** How text is split before it is merged. Default `qwen2`. */
  readonly pre?: string
  /** Ids of the tokens that end a turn and that pad. Default: those of the byte vocabulary. */
  readonly eos?: number
  readonly padding?: number
}

const makeVocabulary = (recipe: GgufRecipe): Vocabulary => {
  const { controls = [], users = [], vocabulary: size = 288, wellFormed = false, words = [] } = recipe
  const merges = ["t h", "i n", "e r"]
  const tokens = [...byteTexts(), ...controlTokens, ...userTokens, ...merges.map((merge) => merge.replace(" ", ""))]
  const types: Array<number> = tokens.map((_, id) => (id < 256 ? 1 : id < 259 ? 3 : id < 265 ? 4 : 1))
  const spelled = byteTexts()
  for (const [list, type] of [
    [controls, 3],
    [users, 4]
  ] as const) {
    tokens.push(...list)
    for (const _ of list) types.push(type)
  }
  for (const word of words) {
    types.push(1)
    tokens.push(Array.from(Buffer.from(word), (byte) => spelled[byte]!).join(""))
  }
  for (const byte of wellFormed ? hardBytes : []) {
    types[byte] = 5
    tokens[byte] = `[BYTE${byte}]`
  }
  while (tokens.length < size) {
    types.push(5)
    tokens.push(`[PAD${tokens.length}]`)
  }
  return { tokens, types, merges }
}

const hardBytes = [0xc0, 0xc1, 0xe0, 0xed, 0xf0, 0xf4, ...Array.from({ length: 11 }, (_, index) => 0xf5 + index)]

/** How byte-level vocabularies spell each byte. */
const byteTexts = (): ReadonlyArray<string> => {
  const printable = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173)
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++))
}

const template = "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%- endfor %}"

const tokenizer = (vocabulary: Vocabulary): ReadonlyArray<Entry> => [
  ["tokenizer.ggml.model", "text", "gpt2"],
  ["tokenizer.ggml.pre", "text", vocabulary.pre ?? "qwen2"],
  ["tokenizer.ggml.tokens", "array", vocabulary.tokens, "text"],
  ["tokenizer.ggml.token_type", "array", vocabulary.types, "i32"],
  ["tokenizer.ggml.merges", "array", vocabulary.merges, "text"],
  ["tokenizer.ggml.eos_token_id", "u32", vocabulary.eos ?? 258],
  ["tokenizer.ggml.padding_token_id", "u32", vocabulary.padding ?? vocabulary.eos ?? 256],
  ["tokenizer.ggml.add_bos_token", "bool", false],
  ["tokenizer.chat_template", "text", template]
]

const body = (
  recipe: GgufRecipe,
  vocabulary: number
): { readonly entries: ReadonlyArray<Entry>; readonly tensors: ReadonlyArray<Tensor> } => {
  const { arch = "llama", ctx = 4096, dim = 64, ff = 128 } = recipe
  const layers = recipe.layers ?? { llama: 2, qwen35: 4, gemma3: 6 }[arch]
  const head = dim / heads
  const number = (key: string, value: number): Entry => [`${arch}.${key}`, "u32", value]
  const entries: Array<Entry> = [
    ["general.architecture", "text", recipe.claims ?? arch],
    ["general.name", "text", `random ${arch}`],
    ["general.file_type", "u32", 1],
    number("context_length", ctx),
    number("embedding_length", dim),
    number("block_count", layers),
    number("feed_forward_length", ff),
    number("attention.head_count", heads),
    number("attention.head_count_kv", kvHeads),
    number("attention.key_length", head),
    number("attention.value_length", head),
    number("rope.dimension_count", head),
    number("vocab_size", vocabulary),
    [`${arch}.attention.layer_norm_rms_epsilon`, "f32", 1e-5],
    [`${arch}.rope.freq_base`, "f32", 10000]
  ]
  if (recipe.pooling !== undefined) entries.push(number("pooling_type", recipe.pooling))
  if (recipe.causal !== undefined) entries.push([`${arch}.attention.causal`, "bool", recipe.causal])
  if (arch === "qwen35") entries.push(...recurrentEntries(head))
  if (arch === "gemma3") entries.push(number("attention.sliding_window", 256))
  const tensors: Array<Tensor> = [
    matrix("token_embd.weight", dim, vocabulary, 1),
    ones("output_norm.weight", dim),
    matrix("output.weight", dim, vocabulary, 4 / Math.sqrt(dim))
  ]
  for (let layer = 0; layer < layers; layer++) {
    const p = `blk.${layer}.`
    tensors.push(ones(`${p}attn_norm.weight`, dim))
    if (arch === "llama") tensors.push(...attention(p, dim, 1), ones(`${p}ffn_norm.weight`, dim))
    else if (arch === "gemma3") tensors.push(...slidingLayer(p, dim))
    else tensors.push(ones(`${p}post_attention_norm.weight`, dim), ...hybridLayer(p, dim, layer))
    tensors.push(
      matrix(`${p}ffn_gate.weight`, dim, ff),
      matrix(`${p}ffn_up.weight`, dim, ff),
      matrix(`${p}ffn_down.weight`, ff, dim)
    )
  }
  return { entries, tensors }
}

const matrix = (name: string, columns: number, rows: number, std = 1 / Math.sqrt(columns)): Tensor => ({
  name,
  dims: [columns, rows],
  std,
  half: true
})
const ones = (name: string, size: number, constant = 1): Tensor => ({ name, dims: [size], constant, half: false })

const attention = (p: string, dim: number, queries: number): ReadonlyArray<Tensor> => [
  matrix(`${p}attn_q.weight`, dim, dim * queries),
  matrix(`${p}attn_k.weight`, dim, (dim * kvHeads) / heads),
  matrix(`${p}attn_v.weight`, dim, (dim * kvHeads) / heads),
  matrix(`${p}attn_output.weight`, dim, dim)
]

const slidingLayer = (p: string, dim: number): ReadonlyArray<Tensor> => [
  ...attention(p, dim, 1),
  ones(`${p}attn_q_norm.weight`, dim / heads),
  ones(`${p}attn_k_norm.weight`, dim / heads),
  ones(`${p}post_attention_norm.weight`, dim),
  ones(`${p}ffn_norm.weight`, dim),
  ones(`${p}post_ffw_norm.weight`, dim)
]

const recurrent = { state: 32, groups: 2, rank: 4, convolution: 4 }

const recurrentEntries = (head: number): ReadonlyArray<Entry> => [
  ["qwen35.rope.dimension_sections", "array", [head / 4, head / 8, head / 8, 0], "i32"],
  ["qwen35.ssm.conv_kernel", "u32", recurrent.convolution],
  ["qwen35.ssm.inner_size", "u32", recurrent.state * recurrent.rank],
  ["qwen35.ssm.state_size", "u32", recurrent.state],
  ["qwen35.ssm.time_step_rank", "u32", recurrent.rank],
  ["qwen35.ssm.group_count", "u32", recurrent.groups],
  ["qwen35.full_attention_interval", "u32", 4]
]

const hybridLayer = (p: string, dim: number, layer: number): ReadonlyArray<Tensor> => {
  const head = dim / heads
  if ((layer + 1) % 4 === 0) {
    return [...attention(p, dim, 2), ones(`${p}attn_q_norm.weight`, head), ones(`${p}attn_k_norm.weight`, head)]
  }
  const { convolution, groups, rank, state } = recurrent
  const inner = state * rank
  const mixed = state * groups * 2 + inner
  return [
    matrix(`${p}attn_qkv.weight`, dim, mixed),
    matrix(`${p}attn_gate.weight`, dim, inner),
    { name: `${p}ssm_conv1d.weight`, dims: [convolution, mixed], std: 0.5, half: false },
    { name: `${p}ssm_dt.bias`, dims: [rank], std: 0.5, half: false },
    ones(`${p}ssm_a`, rank, -1),
    matrix(`${p}ssm_beta.weight`, dim, rank),
    matrix(`${p}ssm_alpha.weight`, dim, rank),
    ones(`${p}ssm_norm.weight`, state),
    matrix(`${p}ssm_out.weight`, inner, dim)
  ]
}

const count = (tensor: Tensor): number => tensor.dims.reduce((product, dim) => product * dim, 1)
const padded = (bytes: number): number => Math.ceil(bytes / alignment) * alignment
const pad = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc(padded(bytes.length) - bytes.length)])

const weights = (tensor: Tensor, seed: number, muted: ReadonlyArray<number>): Buffer => {
  const size = count(tensor)
  const next = uniform(seed)
  const values = new Float32Array(size)
  // the sum of three uniform numbers is bell-shaped enough, its standard deviation is a half
  for (let i = 0; i < size; i++) values[i] = tensor.constant ?? (next() + next() + next() - 1.5) * 2 * (tensor.std ?? 1)
  if (tensor.name === "output.weight") {
    for (const row of muted) values.fill(0, row * tensor.dims[0]!, (row + 1) * tensor.dims[0]!)
  }
  if (!tensor.half) return Buffer.from(values.buffer)
  const halves = Buffer.alloc(size * 2)
  const bits = new Uint32Array(values.buffer)
  for (let i = 0; i < size; i++) halves.writeUInt16LE(half(bits[i]!), i * 2)
  return halves
}

/** The 16-bit float for the bits of a 32-bit one; tiny values become zero. */
const half = (bits: number): number => {
  const sign = (bits >>> 16) & 0x8000
  const exponent = ((bits >>> 23) & 0xff) - 112
  return exponent <= 0 ? sign : sign | (exponent << 10) | ((bits >>> 13) & 0x3ff)
}

/** Numbers in [0, 1) from a xorshift generator. */
const uniform = (seed: number) => {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x7f4a7c15) | 1
  return (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}
