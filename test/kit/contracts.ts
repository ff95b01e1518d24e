/** Contracts for tools of tests, stated in full: what a test does not care about is the plainest there is. */
import type * as Tool from "effect/ai/Tool"
import * as Contract from "../../src/tools/Contract.ts"
import type { Terms } from "../../src/tools/Terms.ts"

const plainest = {
  ledger: "none",
  retry: "never",
  reversible: true,
  evidence: { source: "self", describes: "its own answer" },
  post: "result"
} as const

/** A tool that acts, with `risk` and the plainest statement, or with what is given instead. */
export const acts = <T extends Tool.Any>(
  risk: "local-write" | "external",
  tool: T,
  terms: Partial<Contract.PlainTerms> & Terms<Tool.Parameters<T>, Tool.Success<T>> = {}
): T => Contract.declare(tool, { ...plainest, risk, ...terms } as Parameters<typeof Contract.declare<T>>[1])
