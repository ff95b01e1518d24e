/** Public surface "./mcp": tools of MCP servers in a run, and tools offered as an MCP server. */
export * as McpServer from "./actors/McpServer.ts"
export * as McpServe from "./effects/McpServe.ts"
export * as McpTools from "./effects/McpTools.ts"
export * as McpContractFile from "./tools/mcp/McpContractFile.ts"
