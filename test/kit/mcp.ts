/** MCP servers for tests: the hostile one of ours, and the two public ones. */
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import type { McpLimits, McpServer, StdioServer } from "../../src/actors/McpServer.ts"

const require = createRequire(import.meta.url)

/** A module of a package, run by this Node. */
export const node = (script: string, ...args: ReadonlyArray<string>): StdioServer => ({
  _tag: "Stdio",
  command: process.execPath,
  args: [script, ...args]
})

/** The place of a package that exports nothing. */
const packaged = (name: string): string => join(dirname(require.resolve(`${name}/package.json`)), "dist/index.js")

export const hostile = (...modes: ReadonlyArray<string>): McpServer => ({
  name: "h",
  transport: node(join(import.meta.dirname, "hostileMcp.ts"), ...modes)
})

export const everything: McpServer = {
  name: "all",
  transport: node(packaged("@modelcontextprotocol/server-everything"))
}

export const filesystem = (directory: string): McpServer => ({
  name: "files",
  transport: node(packaged("@modelcontextprotocol/server-filesystem"), directory)
})

/** Long enough on a busy machine; where a test waits for one of them to be over, it sets it. */
export const patient: Partial<McpLimits> = {
  startMillis: 60_000,
  listMillis: 60_000,
  hearMillis: 60_000,
  exitMillis: 500
}

/** Is there a process of this id? */
export const lives = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
