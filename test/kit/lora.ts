/** Builds a LoRA adapter for a model of `makeGguf`: it changes the queries of the first layer. */

const kinds = { u32: 4, f32: 6, text: 8 } as const

/** @param dim the width of the model; an adapter of another width fits none of its tensors */
export const makeAdapter = (dim = 64, rank = 4): Buffer => {
  const parts: Array<Buffer> = []
  const u32 = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value)
    parts.push(bytes)
  }
  const u64 = (value: number) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(BigInt(value))
    parts.push(bytes)
  }
  const text = (value: string) => {
    u64(Buffer.byteLength(value))
    parts.push(Buffer.from(value))
  }
  const entry = (key: string, value: string | number) => {
    text(key)
    u32(typeof value === "string" ? kinds.text : kinds.f32)
    if (typeof value === "string") text(value)
    else {
      const bytes = Buffer.alloc(4)
      bytes.writeFloatLE(value)
      parts.push(bytes)
    }
  }
  parts.push(Buffer.from("GGUF"))
  u32(3)
  u64(2)
  u64(4)
  entry("general.type", "adapter")
  entry("general.architecture", "llama")
  entry("adapter.type", "lora")
  entry("adapter.lora.alpha", 64)
  const shapes: ReadonlyArray<readonly [string, number, number]> = [
    ["blk.0.attn_q.weight.lora_a", dim, rank],
    ["blk.0.attn_q.weight.lora_b", rank, dim]
  ]
  let offset = 0
  for (const [name, columns, rows] of shapes) {
    text(name)
    u32(2)
    u64(columns)
    u64(rows)
    u32(0)
    u64(offset)
    offset += columns * rows * 4
  }
  const head = Buffer.concat(parts)
  const weights = new Float32Array(offset / 4)
  for (let at = 0; at < weights.length; at++) weights[at] = Math.sin(at * 12.9898) * 0.5
  return Buffer.concat([head, Buffer.alloc((32 - (head.length % 32)) % 32), Buffer.from(weights.buffer)])
}
