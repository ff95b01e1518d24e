/**
 * A small picture that depends on its seed alone, as a real PNG: something binary to publish in demonstrations and tests.
 * PNG as in the W3C specification, third edition: signature, IHDR, IDAT, IEND; 8-bit RGB, no filter.
 */
import { crc32, deflateSync } from "node:zlib"
import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"
import { handedOver, publishing } from "./publishing.ts"

const side = 8

const declared = Tool.make("image_fixture", {
  description: "Write a small test picture as a PNG file.",
  parameters: Schema.Struct({
    name: Schema.String.annotate({ description: "File name that ends in .png" }),
    seed: Schema.optionalKey(Schema.Int.annotate({ description: "Which picture; 0 when left out" }))
  }),
  success: Schema.Struct({ name: Schema.String, bytes: Schema.Int, width: Schema.Int, height: Schema.Int }),
  failure: ToolError,
  dependencies: [ToolContext]
})

export const imageFixture = about(
  declare(declared, {
    ...publishing,
    post: ({ name, seed }, said) => handedOver({ name, bytes: picture(seed ?? 0).byteLength }, said),
    preview: ({ name, seed }) => {
      const { byteLength } = picture(seed ?? 0)
      return Effect.succeed(
        `new file ${name}, ${byteLength} bytes\n+ a PNG of ${side} × ${side} pixels from seed ${seed ?? 0}`
      )
    }
  }),
  {
    text: `8 by 8 pixels, which depend on the seed alone: something binary to publish in demonstrations and tests. Published like \`write_artifact\`'s.`,
    example: { name: "sample.png", seed: 7 },
    varies: true
  }
)

/** Length, type, data, and the checksum of type and data. */
const chunk = (type: string, data: Uint8Array): Buffer => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(data.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(crc32(body), body.length + 4)
  return out
}

/** Rows of pixels, each after the byte that names its filter (0: none). */
const pixels = (seed: number): Buffer => {
  const raw = Buffer.alloc(side * (1 + side * 3))
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const at = y * (1 + side * 3) + 1 + x * 3
      raw[at] = (x * 32 + seed * 17) & 0xff
      raw[at + 1] = (y * 32 + seed * 29) & 0xff
      raw[at + 2] = ((x ^ y) * 32 + seed * 43) & 0xff
    }
  }
  return raw
}

/** The picture of a seed, byte for byte the same each time on one version of zlib, pixel for pixel on all. */
const picture = (seed: number): Uint8Array => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(pixels(seed), { level: 9 })),
    chunk("IEND", Buffer.alloc(0))
  ])
}

export const handleImageFixture = Effect.fnUntraced(function* (asked: {
  readonly name: string
  readonly seed?: number
}) {
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,123}\.png$/.test(asked.name)) {
    const message = "a name ends in .png and has at most 128 letters, digits, dots, underscores or hyphens"
    return yield* new ToolError({ kind: "invalid_arguments", message, path: "name" })
  }
  const bytes = picture(asked.seed ?? 0)
  const { produce } = yield* ToolContext
  produce({ name: asked.name, mediaType: "image/png", bytes })
  return { name: asked.name, bytes: bytes.byteLength, width: side, height: side }
})
