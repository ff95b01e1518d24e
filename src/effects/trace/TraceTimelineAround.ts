/** Words for events around the turns: how a run is routed and phased, what becomes of its context and its engine. */
import type { TraceRecord } from "./TraceReader.ts"
import { join, millis, num, show, type Words } from "./TraceShown.ts"

export const around: Readonly<Record<string, (record: TraceRecord) => Words | undefined>> = {
  routed: ({ data }) => [
    data["route"] === "chat" ? "talks" : "works",
    join(
      data["by"] === "chat" ? "the talk handed over" : `decided by ${show(data["by"])}`,
      show(data["reason"]),
      show(data["text"]),
      millis(data["duration_ms"])
    )
  ],
  phase_started: ({ data }) => [
    "phase",
    join(
      show(data["phase"]),
      data["thinking"] === null ? "" : `thinking ${data["thinking"] === true ? "on" : "off"}`,
      `at most ${show(data["max_tokens"])} tokens a turn`
    ),
    "quiet"
  ],
  child_run_started: ({ data }) => ["run inside", join(show(data["tool"]), show(data["run"])), "quiet"],
  context_compacted: ({ data }) => [
    "compacted",
    join(
      `${show(data["exchanges"])} of the oldest exchanges left the context of ${show(data["before"])} tokens`,
      num(data["left"]) > 0 ? "stopped before all of the rest was back" : ""
    )
  ],
  engine_restarted: ({ data }) => [
    "engine opened again",
    `${show(data["cause"])}; ${show(data["tokens"])} tokens`,
    "bad"
  ]
}
