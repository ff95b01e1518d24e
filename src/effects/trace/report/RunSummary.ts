/** The first thing on the page: which run, how it ended, what made it, and what it came to. */
import type { TraceRecord } from "../TraceReader.ts"
import type { Summary } from "../TraceTimeline.ts"
import { badge } from "./CallView.ts"
import { content, type Data, duration, isData, word } from "./Fields.ts"
import { html, json, Markup, number, type Part, type Room } from "./Markup.ts"

/** What a run says of itself at its beginning. */
export class Beginning {
  #provenance: Data | undefined
  #started: Data | undefined
  #answer: unknown

  readonly see = ({ data, event_type: type }: TraceRecord): void => {
    if (type === "run_started") this.#started ??= data
    if (type === "provenance") this.#provenance ??= data
    if (type === "run_completed") this.#answer ??= data["final_text"] ?? data["final_text_sha256"]
  }

  get task(): unknown {
    return this.#started?.["task"]
  }

  get answer(): unknown {
    return this.#answer
  }

  get provenance(): Data {
    return this.#provenance ?? {}
  }

  /** Name, architecture and quantization of the model, as far as they are known. */
  get model(): string {
    const about = this.provenance["model"]
    const of = isData(about) ? about : this.provenance
    const named = [of["name"] ?? of["model_path"], of["architecture"], of["quantization"]]
    return named
      .map((part) => word(part))
      .filter((part) => part !== "")
      .join(" · ")
  }
}

const statusBadge = ({ events, status, statusDetail }: Summary, room: Room): Markup => {
  const detail = statusDetail === "" ? "" : html`: ${room.line(statusDetail, 300)}`
  const words = html`${events === 0 ? "no events" : status}${detail}`
  if (status === "completed") return badge("good", words)
  return badge(status === "failed" || status === "unfinished" ? "bad" : "warn", words)
}

const field = (name: string, value: Part): Part =>
  value === "" || (value instanceof Markup && value.value === "")
    ? undefined
    : html`<div><dt>${name}</dt><dd>${value}</dd></div>`

const figure = (name: string, value: string): Markup => html`<div><dd>${value}</dd><dt>${name}</dt></div>`

export const runSummary = (summary: Summary, beginning: Beginning, verdict: Markup, room: Room): Markup => {
  const runs = summary.runIds.slice(0, 5).map((id) => room.clip(id, 200).text)
  const several = summary.runIds.length > 1 ? ` (${summary.runIds.length} runs in one file)` : ""
  const line = (value: unknown, most = 300) => room.line(content(value), most)
  const { answer, provenance, task } = beginning
  return html`<p class="badges lead">${statusBadge(summary, room)} ${verdict} ${
    summary.content === false ? badge("quiet", "recorded without content") : undefined
  }</p>
${task === undefined ? undefined : html`<h3>Task</h3><div class="said">${room.box(content(task), 4_000)}</div>`}
${answer === undefined ? undefined : html`<h3>Answer</h3><div class="said answer">${room.box(content(answer), 8_000)}</div>`}
<dl class="figures">${figure("turns", number(summary.turns))}${figure("calls", number(summary.toolCalls))}${figure(
    "refused",
    number(summary.rejected)
  )}${figure("artifacts", number(summary.artifacts))}${figure("tokens", number(summary.outputTokens))}${figure(
    "model",
    duration(summary.modelMillis)
  )}${figure("tools", duration(summary.toolMillis))}${figure("total", duration(summary.seconds * 1000))}</dl>
<dl class="about">${field("Run", `${runs.join(", ")}${several}`)}${field("Model", line(beginning.model))}${field(
    "Codec",
    line(provenance["codec"] ?? provenance["protocol_id"])
  )}${field("Policy", line(provenance["policy"]))}${field("Schema", summary.schema ?? "")}</dl>
${Object.keys(provenance).length === 0 ? undefined : html`<details><summary>Everything the run was made with</summary>${room.box(json(provenance, 2), 20_000)}</details>`}`
}
