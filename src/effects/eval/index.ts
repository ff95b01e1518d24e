/**
 * Public surface "effect-writ/eval": suites over conversations, decided by a program of one's own, with engines, tools and an
 * embedder of its choice; reports in every form, comparisons, repeated runs and the gate.
 */
export * as Kinds from "./assertions/Kinds.ts"
export * as Comparison from "./Comparison.ts"
export * as ComparisonMarkdown from "./ComparisonMarkdown.ts"
export * as Embedder from "./Embedder.ts"
export * as Evaluation from "./Evaluation.ts"
export * as Bfcl from "./external/Bfcl.ts"
export * as CallLists from "./external/CallLists.ts"
export * as Gate from "./Gate.ts"
export * as JUnit from "./JUnit.ts"
export * as JudgeEngine from "./JudgeEngine.ts"
export * as Kind from "./Kind.ts"
export * as Project from "./Project.ts"
export * as Page from "./page/Page.ts"
export * as Repeats from "./Repeats.ts"
export * as Report from "./Report.ts"
export * as ReportMarkdown from "./ReportMarkdown.ts"
export * as Statistics from "./Statistics.ts"
export * as Suite from "./Suite.ts"
export * as Verdict from "./Verdict.ts"
