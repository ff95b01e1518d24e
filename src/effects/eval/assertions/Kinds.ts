/** All kinds of assertions, in the order they are documented. */
import type { Kind } from "../Kind.ts"
import { artifactExists } from "./ArtifactExists.ts"
import { bfclCalls } from "./BfclCalls.ts"
import { callsAnswered } from "./CallsAnswered.ts"
import { jsonPath } from "./JsonPath.ts"
import { judge } from "./Judge.ts"
import { latencyMs } from "./LatencyMs.ts"
import { mustCallTool } from "./MustCallTool.ts"
import { mustNotCallTool } from "./MustNotCallTool.ts"
import { noUncommittedEffects } from "./NoUncommittedEffects.ts"
import { program } from "./Program.ts"
import { responseField } from "./ResponseField.ts"
import { script } from "./Script.ts"
import { terminalState } from "./TerminalState.ts"
import { textContains } from "./TextContains.ts"
import { textEquals } from "./TextEquals.ts"
import { textMatches } from "./TextMatches.ts"
import { textNotContains } from "./TextNotContains.ts"
import { textSemanticMatch } from "./TextSemanticMatch.ts"
import { tokens } from "./Tokens.ts"
import { tool } from "./Tool.ts"
import { toolCallCollection } from "./ToolCallCollection.ts"
import { toolCallCount } from "./ToolCallCount.ts"
import { toolCallOrder } from "./ToolCallOrder.ts"
import { toolExecuted } from "./ToolExecuted.ts"
import { toolRefused } from "./ToolRefused.ts"
import { toolResultOk } from "./ToolResultOk.ts"

export const kinds = [
  mustCallTool,
  mustNotCallTool,
  toolCallCount,
  toolCallOrder,
  toolCallCollection,
  textContains,
  textNotContains,
  textMatches,
  textEquals,
  textSemanticMatch,
  jsonPath,
  responseField,
  tokens,
  latencyMs,
  judge,
  tool,
  script,
  program,
  toolExecuted,
  toolRefused,
  toolResultOk,
  artifactExists,
  noUncommittedEffects,
  callsAnswered,
  terminalState
] as const

/** Kinds that suites from elsewhere need, with matching rules of their own. */
export const external = [bfclCalls] as const

type Of<K> = K extends Kind<string, infer A> ? A : never

/** One assertion of a suite, tagged by `type`. */
export type Assertion = Of<(typeof kinds)[number] | (typeof external)[number]>

/** Kinds by their name. */
export const byType: ReadonlyMap<string, Kind<string, { readonly type: string }>> = new Map(
  [...kinds, ...external].map((one) => [one.type, one as unknown as Kind<string, { readonly type: string }>])
)
