/**
 * A source file as the architecture rules see it: what it imports and how long it and its functions are.
 * Parses with the parser that vite brings; knows nothing of the rules.
 */
import { dirname, join, normalize } from "node:path/posix"
import { parseSync } from "vite"

export interface Import {
  /** As written, or from the root (`src/tools/ToolCall.ts`) where it was written as a relative path. */
  readonly target: string
  readonly relative: boolean
  /** Erased before the file runs. */
  readonly typeOnly: boolean
  /** `import()`: loaded when reached, not at start. */
  readonly dynamic: boolean
}

export interface Source {
  /** From the root, with forward slashes. */
  readonly file: string
  readonly text: string
  readonly imports: ReadonlyArray<Import>
  /** Lines that hold something else than blanks and comments. */
  readonly lines: number
  readonly functions: ReadonlyArray<{ readonly line: number; readonly lines: number }>
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

/** Reads one file. A file that does not parse is a defect of the caller: it throws. */
export const parse = (file: string, text: string): Source => {
  const { comments, errors, program } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]!.message}`)
  const code = codeLines(text, comments)
  const imports: Array<Import> = []
  const functions: Array<{ line: number; lines: number }> = []
  walk(program as unknown as Node, (node) => {
    const found = importOf(file, node)
    if (found !== undefined) imports.push(found)
    if (isFunction.has(node.type)) {
      const [first, last] = [lineAt(text, node.start), lineAt(text, node.end)]
      functions.push({ line: first + 1, lines: code.slice(first, last + 1).filter(Boolean).length })
    }
  })
  return { file, text, imports, lines: code.filter(Boolean).length, functions }
}

const isFunction = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"])

const walk = (node: Node, visit: (node: Node) => void): void => {
  visit(node)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === "object" && child !== null && typeof child.type === "string") walk(child, visit)
    }
  }
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length - 1

/** For each line: does it hold code? */
const codeLines = (text: string, comments: ReadonlyArray<{ start: number; end: number }>): Array<boolean> => {
  let rest = text
  for (const { end, start } of comments) {
    rest = rest.slice(0, start) + rest.slice(start, end).replace(/[^\n]/g, " ") + rest.slice(end)
  }
  return rest.split("\n").map((line) => line.trim() !== "")
}

const importOf = (file: string, node: Node): Import | undefined => {
  const source = node["source"] as Node | null | undefined
  const name = source?.["value"]
  if (typeof name !== "string") return undefined
  const relative = /^\.{1,2}\//.test(name)
  return {
    target: relative ? normalize(join(dirname(file), name)) : name,
    relative,
    typeOnly: node.type === "TSImportType" || node["importKind"] === "type" || node["exportKind"] === "type",
    dynamic: node.type === "ImportExpression"
  }
}
