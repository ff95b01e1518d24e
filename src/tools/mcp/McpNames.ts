/** What an MCP server's tools are called here: `server__tool`, in the letters every model family can write, always the same. */
import { createHash } from "node:crypto"

/** Names of servers: 1 to 24 letters, digits, hyphens and single underscores. */
export const serverName = /^(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,22}[A-Za-z0-9]$|^[A-Za-z0-9]$/

const longest = 64
const digits = 8

/**
 * The name a tool is registered under. A name that has other letters, or is too long, loses them and ends in eight hex
 * digits of its SHA-256, so that two such names of one server stay two.
 */
export const registeredName = (server: string, tool: string): string => {
  const plain = tool.replace(/[^A-Za-z0-9_-]/g, "_")
  const name = `${server}__${plain}`
  if (plain === tool && tool !== "" && name.length <= longest) return name
  const tail = createHash("sha256").update(tool).digest("hex").slice(0, digits)
  return `${name.slice(0, longest - digits - 1)}_${tail}`
}
