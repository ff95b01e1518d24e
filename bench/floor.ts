/** The least that is correct: a hand-written async loop with JSON.parse, a check and one `writeSync` per event. */
import { closeSync, openSync, writeSync } from "node:fs"

const argumentsJson = '{"expression":"17.5*240/100"}'

export interface Sink {
  readonly write: (line: string) => void
  readonly close: () => void
}

/** A file sink as the floor writes it: one system call per line, a new file per run. */
export const fileSink = (path: string): Sink => {
  const fd = openSync(path, "ax")
  return { write: (line) => void writeSync(fd, line), close: () => closeSync(fd) }
}

/** One run of `steps` calls and a final text. `sink` undefined: no record. */
export const floorRun = async (steps: number, tool: (expression: string) => number, sink: Sink | undefined) => {
  let seq = 0
  const event = (type: string, data: object): void =>
    sink?.write(`${JSON.stringify({ v: 1, seq: seq++, ts: Date.now(), run: "floor", type, ...data })}\n`)
  const messages: Array<object> = [{ role: "user", content: "What is 17.5% of 240?" }]
  event("run_started", { tools: ["calculate"] })
  for (let turn = 0; ; turn++) {
    event("model_call_started", { turn })
    const said = await (async () => (turn < steps ? { call: argumentsJson, text: "" } : { call: "", text: "42" }))()
    event("model_call_finished", { turn, text: said.text })
    if (said.call === "") {
      event("run_finished", { text: said.text })
      return said.text
    }
    event("tool_call_parsed", { turn })
    const args = JSON.parse(said.call) as { expression: unknown }
    if (typeof args.expression !== "string") throw new Error("bad arguments")
    event("tool_call_validated", { turn })
    event("tool_started", { turn, args })
    const result = await (async () => tool(args.expression as string))()
    event("tool_finished", { turn, result })
    messages.push({ role: "tool", content: JSON.stringify({ result }) })
    event("result_committed", { turn })
  }
}
