/** Conversations from an assembly and the files it names (R-AILLY-8, 9, 11): everything is read here, nothing is written. Throws. */
import type { Conversation, Message } from "../Conversation.ts"
import type { Path } from "../YamlDocuments.ts"
import type { Assembly, Prefix, Turn } from "./Assembly.ts"
import type { Case } from "./Matrix.ts"
import * as PathTemplate from "./PathTemplate.ts"
import type { ProjectFile, ProjectFiles } from "./ProjectFiles.ts"
import { addTools, type FoundTool } from "./ToolFiles.ts"

/** A conversation with its blank slots, and which file each of its tools is from. */
export interface Composed {
  readonly from: Case
  readonly conversation: Conversation
  readonly tools: ReadonlyArray<FoundTool>
}

/** Every path of the assembly that may have variables in it, and where it stands. */
const pathsOf = ({ conversation, prefix }: Assembly): ReadonlyArray<readonly [string, Path]> => [
  ...prefix.flatMap(
    (block, index): ReadonlyArray<readonly [string, Path]> =>
      block.kind === "context"
        ? [
            [block.source, ["prefix", index, "source"]],
            [block.glob, ["prefix", index, "glob"]]
          ]
        : [[block.path, ["prefix", index, "path"]]]
  ),
  ...conversation.flatMap(
    (turn, index): ReadonlyArray<readonly [string, Path]> =>
      turn.role === "user" ? [[turn.path, ["conversation", index, "path"]]] : []
  )
]

/** Refuses every path that cannot be filled in, before any file is looked at. */
export const checkPaths = (assembly: Assembly, axes: ReadonlyArray<string>): void => {
  for (const [path, place] of pathsOf(assembly)) PathTemplate.check(path, axes, place)
}

const filesOf = (
  block: Prefix,
  files: ProjectFiles,
  fill: (path: string) => string,
  place: Path
): ReadonlyArray<ProjectFile> => {
  if (block.kind === "context") {
    const found = files.glob(`${fill(block.source).replace(/\/+$/, "")}/${fill(block.glob)}`, [...place, "source"])
    return block.count === undefined ? found : found.slice(0, block.count)
  }
  const path = fill(block.path)
  const at = [...place, "path"]
  if (block.kind === "file") return [files.file(path, at)]
  if (block.kind === "external") return [files.external(path, at)]
  return files.glob(path, at)
}

const turnMessage = (turn: Turn, files: ProjectFiles, fill: (path: string) => string, place: Path): Message =>
  turn.role === "assistant"
    ? { role: "assistant" }
    : {
        role: "user",
        content: files.file(fill(turn.path), place).text,
        ...(turn.cache ? { cache: true } : {})
      }

/** The conversation of one case. */
export const compose = (assembly: Assembly, from: Case, files: ProjectFiles): Composed => {
  const fill = (path: string): string => PathTemplate.fill(path, from.binding, [])
  const system: Array<Message> = []
  let tools: ReadonlyArray<FoundTool> = []
  for (const [index, block] of assembly.prefix.entries()) {
    const found = filesOf(block, files, fill, ["prefix", index])
    if (block.kind === "tools") tools = addTools(tools, found)
    else {
      const content = found.map(({ text }) => text).join("\n")
      system.push({ role: "system", content, ...(block.cache ? { cache: true } : {}) })
    }
  }
  const turns = assembly.conversation.map((turn, index) =>
    turnMessage(turn, files, fill, ["conversation", index, "path"])
  )
  const hasBinding = Object.keys(from.binding).length > 0
  return {
    from,
    conversation: {
      meta: {
        model: from.model,
        assembly: assembly.name,
        ...(hasBinding ? { binding: from.binding } : {}),
        ...(tools.length > 0 ? { tools: tools.map(({ tool }) => tool) } : {})
      },
      session: [...system, ...turns]
    },
    tools
  }
}
