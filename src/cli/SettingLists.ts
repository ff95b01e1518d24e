/** Settings that more than one command takes, in the order of `--help`. Light: help is printed from these. */
import type { SettingName } from "../effects/SettingFields.ts"

/** The MCP servers of a command. */
export const servers = ["mcp", "mcpContracts", "mcpEnv", "mcpHeader"] as const satisfies ReadonlyArray<SettingName>

/** Tools that are files, and what tools see. */
export const tools = ["toolsDir", "toolEnv"] as const satisfies ReadonlyArray<SettingName>

/** What may be read on the web. */
export const web = [
  "webHost",
  "webAddress",
  "webSearch",
  "webCache",
  "webCacheMode",
  "webHtml"
] as const satisfies ReadonlyArray<SettingName>

/** Settings that no record holds, so that whoever goes on with a run has to say them again. */
export const unrecorded = [
  "model",
  "script",
  ...tools,
  ...servers,
  ...web,
  "workspace",
  "fixture",
  "redact",
  "approve",
  "approvalExpiry",
  "grant",
  "deny",
  "scope",
  "ledger",
  "modelsDir",
  "modelHash",
  "threads",
  "gpu",
  "flashAttention",
  "cacheType",
  "lora",
  "isolation",
  "restarts",
  "keepState",
  "engineUrl",
  "engineApi",
  "apiKeyEnv",
  "allowPlainHttp"
] as const satisfies ReadonlyArray<SettingName>
