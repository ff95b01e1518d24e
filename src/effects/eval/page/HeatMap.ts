/** The matrix of an evaluation as a heat map: one cell per conversation by its binding, each a link to its details. */
import { html, type Markup } from "../../trace/report/Markup.ts"
import { heatOf, type Row, shareText } from "./Rows.ts"

/** Values of one axis that fit side by side. */
const mostColumns = 16

/** Rows of the map; longer ones are in the table of conversations. */
const mostRows = 300

const axesOf = (rows: ReadonlyArray<Row>): ReadonlyArray<string> | undefined => {
  const bindings = rows.map(({ conversation }) => Object.keys(conversation?.meta.binding ?? {}).sort())
  const first = bindings[0]
  if (first === undefined || first.length === 0) return undefined
  return bindings.every((axes) => axes.join("\0") === first.join("\0")) ? first : undefined
}

const valueOf = (row: Row, axis: string): string => row.conversation?.meta.binding?.[axis] ?? ""

/** The axis with most values that still fits as columns: the wider the map, the shorter. */
const columnAxis = (rows: ReadonlyArray<Row>, axes: ReadonlyArray<string>): string | undefined => {
  const sizes = axes.map((axis) => ({ axis, size: new Set(rows.map((row) => valueOf(row, axis))).size }))
  return sizes.filter(({ size }) => size <= mostColumns).sort((a, b) => b.size - a.size)[0]?.axis
}

const cell = (rows: ReadonlyArray<Row>, shown: ReadonlySet<string>): Markup => {
  const [row] = rows
  if (row === undefined) return html`<td class="hx">–</td>`
  const decided = rows.flatMap((one) => one.decided)
  const text = shareText(decided)
  const said = `${row.name}: ${text} passed`
  return html`<td class="h${heatOf(decided)}">${
    shown.has(row.id) ? html`<a href="#${row.id}" aria-label="${said}">${text}</a>` : text
  }</td>`
}

const legend = html`<ul class="scale"><li><span class="step s0"></span>none passed</li><li><span class="step s2"></span>some</li><li><span class="step s4"></span>most</li><li><span class="step s5"></span>all passed</li><li><span class="step sx"></span>nothing decided</li></ul>`

/** @param shown ids of the rows that have details */
export const heatMap = (all: ReadonlyArray<Row>, shown: ReadonlySet<string>): Markup => {
  const rows = all.filter(({ conversation }) => conversation !== undefined)
  const axes = axesOf(rows)
  if (axes === undefined) {
    return html`<p class="quiet">The conversations have no common matrix; the table below has them one by one.</p>`
  }
  const across = columnAxis(rows, axes)
  const down = axes.filter((axis) => axis !== across)
  const columns = across === undefined ? [""] : [...new Set(rows.map((row) => valueOf(row, across)))]
  const groups = Map.groupBy(rows, (row) => down.map((axis) => valueOf(row, axis)).join("\0"))
  const body = [...groups.values()].slice(0, mostRows).map((group) => {
    const name = down.map((axis) => valueOf(group[0]!, axis)).join(" · ")
    const cells = columns.map((value) =>
      cell(
        group.filter((row) => across === undefined || valueOf(row, across) === value),
        shown
      )
    )
    return html`<tr><th scope="row">${name === "" ? "all" : name}</th>${cells}</tr>\n`
  })
  const corner = `${down.join(" · ")}${across === undefined ? "" : `${down.length === 0 ? "" : " \\ "}${across}`}`
  return html`<div class="scroll"><table class="heat"><thead><tr><th scope="col">${corner}</th>${columns.map(
    (value) => html`<th scope="col">${value === "" ? "passed" : value}</th>`
  )}</tr></thead><tbody>
${body}</tbody></table></div>
${groups.size > mostRows ? html`<p class="cut">${groups.size - mostRows} more rows are not drawn.</p>` : undefined}${legend}`
}
