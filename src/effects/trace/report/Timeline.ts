/** Draws bars on lanes, in SVG without styles of its own: places are percentages of the time from first to last event. */
import type { Bar, Lane } from "./Bars.ts"
import { count, duration } from "./Fields.ts"
import { html, type Markup, number } from "./Markup.ts"

const names: Readonly<Record<Lane, string>> = { context: "Context", model: "Model", tool: "Tools", wait: "Waits" }
const lanes: ReadonlyArray<Lane> = ["context", "model", "tool", "wait"]

const barHeight = 22
const rowHeight = 28
const laneGap = 12
const axisHeight = 26

/** More than this are drawn in groups. */
const most = 1_500
/** Bars of one lane that lie closer than this part of the whole are one group. */
const grain = 1 / 800
/** Calls side by side that get a row of their own. */
const mostRows = 12

interface Placed extends Bar {
  readonly row: number
  /** How many bars it stands for. */
  readonly members: number
}

/** Puts bars that overlap into rows below each other. */
const inRows = (bars: ReadonlyArray<Bar>): ReadonlyArray<Placed> => {
  const ends: Array<number> = []
  return bars.map((bar) => {
    let row = ends.findIndex((end) => end <= bar.from)
    if (row < 0) row = ends.length < mostRows ? ends.length : mostRows - 1
    ends[row] = Math.max(bar.to, ends[row] ?? 0)
    return { ...bar, row, members: 1 }
  })
}

/** One row of groups of like bars. What failed is drawn last, over what did not. */
const grouped = (bars: ReadonlyArray<Bar>, gap: number): ReadonlyArray<Placed> => {
  const groups = new Map<Bar["state"], Array<Bar & { members: number }>>([
    ["good", []],
    ["open", []],
    ["rolled", []],
    ["bad", []]
  ])
  for (const bar of bars) {
    const like = groups.get(bar.state)!
    const last = like.at(-1)
    if (last !== undefined && bar.from - last.to < gap) {
      last.to = Math.max(last.to, bar.to)
      last.members += 1
    } else like.push({ ...bar, members: 1 })
  }
  return [...groups.values()].flat().map((group) => ({ ...group, row: 0 }))
}

/** A step between ticks that a person can add up: 1, 2 or 5 times a power of ten. */
const tickStep = (span: number): number => {
  const rough = span / 6
  const power = 10 ** Math.floor(Math.log10(rough))
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10)
}

const percent = (part: number): string => `${Math.round(part * 100_000) / 1000}%`

const said: Readonly<Record<Bar["state"], string>> = {
  good: "",
  bad: ", failed",
  rolled: ", rolled back",
  open: ", no end in the record"
}

interface Scale {
  readonly from: number
  readonly span: number
}

const barView = (bar: Placed, top: number, { from, span }: Scale): Markup => {
  const at = (time: number) => percent((time - from) / span)
  const width = (some: { readonly from: number; readonly to: number }) => percent((some.to - some.from) / span)
  const y = top + bar.row * rowHeight
  const group = bar.members > 1
  const label = group ? `${count(bar.members, "bar")} close together, the first: ${bar.label}` : bar.label
  const inner = group ? [] : (bar.attempts ?? [])
  const times = inner.length < 2 ? "" : `, ${inner.length} ${bar.lane === "model" ? "attempts" : "tries"}`
  const title = `${label}: ${duration(bar.to - bar.from)}, from ${duration(bar.from - from)}${times}${said[bar.state]}`
  const rect = html`<rect class="bar ${bar.lane} ${bar.state}" x="${at(bar.from)}" y="${y}" width="${width(bar)}" height="${barHeight}" rx="3"/>`
  const hatch =
    bar.state === "rolled"
      ? html`<rect class="hatch" x="${at(bar.from)}" y="${y}" width="${width(bar)}" height="${barHeight}" rx="3"/>`
      : undefined
  const attempts =
    inner.length < 2
      ? undefined
      : inner.map(
          (one) =>
            html`<rect class="attempt" x="${at(one.from)}" y="${y + barHeight - 8}" width="${width(one)}" height="6"/>`
        )
  const body = html`<title>${title}</title>${rect}${hatch}${attempts}`
  return bar.anchor === undefined
    ? html`<g role="img" aria-label="${title}">${body}</g>`
    : html`<a href="#${bar.anchor}" aria-label="${title}">${body}</a>`
}

interface Drawn {
  readonly lane: Lane
  readonly bars: ReadonlyArray<Placed>
  readonly top: number
  readonly rows: number
}

const lay = (
  bars: ReadonlyArray<Bar>,
  span: number
): { readonly drawn: ReadonlyArray<Drawn>; readonly height: number } => {
  let top = axisHeight
  const drawn = lanes.flatMap((lane) => {
    const own = bars.filter((bar) => bar.lane === lane)
    if (own.length === 0) return []
    const placed = bars.length > most ? grouped(own, span * grain) : inRows(own)
    const rows = placed.reduce((highest, bar) => Math.max(highest, bar.row + 1), 1)
    const one = { lane, bars: placed, top: top + 18, rows }
    top += 18 + rows * rowHeight + laneGap
    return [one]
  })
  return { drawn, height: top }
}

const ticks = ({ span }: Scale, height: number): ReadonlyArray<Markup> => {
  const step = tickStep(span)
  const marks: Array<Markup> = []
  // The last label would leave the picture where it is close to the edge.
  for (let index = 0; index * step <= span * 0.93; index++) {
    const x = percent((index * step) / span)
    marks.push(
      html`<line class="tick" x1="${x}" x2="${x}" y1="16" y2="${height}"/><text class="axis" x="${x}" y="12">${duration(index * step)}</text>`
    )
  }
  return marks
}

const legend = html`<ul class="legend"><li><span class="key good"></span>done</li><li><span class="key bad"></span>failed or refused</li><li><span class="key rolled"></span>rolled back</li><li><span class="key open"></span>no end in the record</li></ul>`

/** `anchors`: what can be found further down. A bar is a link only to that. */
export const timeline = (
  found: { readonly bars: ReadonlyArray<Bar>; readonly from: number; readonly to: number },
  anchors: ReadonlySet<string>
): Markup => {
  const { from, to } = found
  const bars = found.bars.map((bar) =>
    bar.anchor === undefined || anchors.has(bar.anchor) ? bar : { ...bar, anchor: undefined }
  )
  if (bars.length === 0) return html`<p class="quiet">Nothing in this trace took time.</p>`
  const scale: Scale = { from, span: Math.max(to - from, 0.001) }
  const { drawn, height } = lay(bars, scale.span)
  const many = bars.length > most
  return html`${legend}<div class="scroll" tabindex="0" role="region" aria-label="Timeline, can be scrolled"><svg class="timeline" width="100%" height="${height}" role="group" aria-label="Timeline of ${duration(scale.span)}">
<defs><pattern id="hatching" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="stripe" width="3" height="7"/></pattern></defs>
${ticks(scale, height)}
${drawn.map(
  ({
    bars: placed,
    lane,
    top
  }) => html`<g data-lane="${lane}"><text class="lane" x="0" y="${top - 5}">${names[lane]}</text>
${placed.map(
  (bar) => html`${barView(bar, top, scale)}
`
)}</g>
`
)}</svg></div>${many ? html`<p class="cut">${number(bars.length)} bars: those of a lane that lie close together are drawn as one.</p>` : undefined}`
}
