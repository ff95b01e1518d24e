/** Tools of a project as JSON files: each the definition of one tool, put into the meta as it is (R-AILLY-9). Throws. */
import * as Result from "effect/Result"
import { parse } from "../../../tools/JsonText.ts"
import type { ToolDefinition } from "../Conversation.ts"
import { ConversationError } from "../ConversationError.ts"
import { toolOf } from "../MetaReading.ts"
import { pathText } from "../Place.ts"
import { Refusal } from "../YamlDocuments.ts"
import type { ProjectFile } from "./ProjectFiles.ts"

/** A tool and the file it is from. */
export interface FoundTool {
  readonly tool: ToolDefinition
  readonly path: string
}

const positionText = (text: string, offset: number): string => {
  const before = text.slice(0, offset).split("\n")
  return `line ${before.length}, column ${before.at(-1)!.length + 1}`
}

const definitionIn = ({ path, text }: ProjectFile): ToolDefinition => {
  const json = parse(text.startsWith("\ufeff") ? text.slice(1) : text, { maxDepth: 90 })
  if (Result.isFailure(json)) {
    const place = positionText(text, json.failure.position)
    throw new ConversationError({ path, place, reason: `it is not JSON that can be used: ${json.failure.reason}` })
  }
  try {
    return toolOf(json.success, [])
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new ConversationError({ path, place: pathText(error.path), reason: error.message })
  }
}

/** Adds the tools of these files. Two files with one name are refused, and both are named. */
export const addTools = (
  found: ReadonlyArray<FoundTool>,
  files: ReadonlyArray<ProjectFile>
): ReadonlyArray<FoundTool> => {
  const all = [...found]
  for (const file of files) {
    const tool = definitionIn(file)
    const other = all.find((one) => one.tool.name === tool.name)
    if (other !== undefined) {
      const where =
        other.path === file.path ? "the file is included twice" : `${other.path} has a tool of this name, too`
      throw new ConversationError({ path: file.path, place: "name", reason: `${tool.name}: ${where}` })
    }
    all.push({ tool, path: file.path })
  }
  return all
}
