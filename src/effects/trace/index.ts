/** Public surface "./trace": read traces, judge them, run them again. Writing them is the run's business. */
export * as Replay from "./Replay.ts"
export * as TraceReader from "./TraceReader.ts"
export * as TraceTimeline from "./TraceTimeline.ts"
export * as TraceValidator from "./TraceValidator.ts"
