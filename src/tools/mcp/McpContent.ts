/**
 * What an MCP tool answered, as a result of ours: text and structure for the model, bytes as artifacts, an error as an error.
 * Whatever is not in the protocol is a bad result, never passed on.
 */
import { hash } from "node:crypto"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import { BadResult } from "../JsonResult.ts"
import type { Json } from "../JsonText.ts"
import type { EffectClaim, ProducedArtifact } from "../ToolCall.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"
import type { OutputCheck } from "./McpOutput.ts"

export interface Reading {
  /** The registered name: artifacts are named after it. */
  readonly tool: string
  readonly check: OutputCheck | undefined
  /** What an error of the tool says about the world. */
  readonly failure: EffectClaim
}

const maxErrorText = 2000

const extensions: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/gif": "gif",
  "image/webp": "webp",
  "image/svg+xml": "svg",
  "audio/wav": "wav",
  "audio/mpeg": "mp3",
  "application/pdf": "pdf",
  "application/json": "json",
  "text/plain": "txt"
}

const mediaTypeOf = (said: string | undefined): string =>
  said !== undefined && /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(said) ? said.toLowerCase() : "application/octet-stream"

/** Named after the tool and its bytes, so that the same picture is the same artifact. */
const artifactOf = (tool: string, bytes: Uint8Array, said: string | undefined): ProducedArtifact => {
  const mediaType = mediaTypeOf(said)
  const digest = hash("sha256", bytes).slice(0, 12)
  return { name: `${tool}-${digest}.${extensions[mediaType] ?? "bin"}`, mediaType, bytes }
}

const textOf = (content: ReadonlyArray<McpSchema.ContentBlock>): string =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")

type Produce = (artifact: ProducedArtifact) => void

const bytesBlock = (
  type: string,
  artifact: ProducedArtifact,
  produce: Produce,
  more: { readonly uri?: string } = {}
): Json => {
  produce(artifact)
  return { type, ...more, artifact: artifact.name, mediaType: artifact.mediaType, bytes: artifact.bytes.byteLength }
}

const blockOf = (tool: string, block: McpSchema.ContentBlock, produce: Produce): Json => {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text }
    case "image":
    case "audio":
      return bytesBlock(block.type, artifactOf(tool, block.data, block.mimeType), produce)
    case "resource_link":
      return { type: "resource_link", uri: block.uri, name: block.name }
    case "resource": {
      const { resource } = block
      if ("text" in resource) return { type: "resource", uri: resource.uri, text: resource.text }
      return bytesBlock("resource", artifactOf(tool, resource.blob, resource.mimeType), produce, { uri: resource.uri })
    }
  }
}

/** One text is the text; a structure is the structure, unless there are bytes beside it; anything else is the list of parts. */
const shapeOf = (tool: string, { content, structuredContent }: McpSchema.CallToolResult, produce: Produce): Json => {
  const beside = content.filter((block) => block.type !== "text")
  if (structuredContent !== undefined) {
    const structured = structuredContent as Json
    return beside.length === 0
      ? structured
      : { structured, content: beside.map((block) => blockOf(tool, block, produce)) }
  }
  if (beside.length === 0 && content.length <= 1) return textOf(content)
  return { content: content.map((block) => blockOf(tool, block, produce)) }
}

const bad = (reason: string): Effect.Effect<never> => Effect.die(new BadResult(reason))

/** The result of a call. Fails with the tool's own error, dies with `BadResult` where the answer is none. */
export const resultOf = Effect.fnUntraced(function* (
  result: McpSchema.CallToolResult,
  { check, failure, tool }: Reading
): Effect.fn.Return<Json, ToolError, ToolContext> {
  if (result.isError === true) {
    const said = textOf(result.content)
    const message = said.length > maxErrorText ? `${said.slice(0, maxErrorText).toWellFormed()}…` : said
    return yield* new ToolError({
      kind: "execution_failed",
      message: message.trim() === "" ? "the tool failed and did not say why" : message,
      effect: failure
    })
  }
  if (check !== undefined) {
    if (result.structuredContent === undefined) return yield* bad("the result lacks the structure its tool promises")
    const fault = check(result.structuredContent as Json)
    if (fault !== undefined) return yield* bad(`the result is not what its tool promises: ${fault}`)
  }
  const { produce } = yield* ToolContext
  return shapeOf(tool, result, produce)
})
