/** The page's style: that of a trace's report, and what an evaluation adds. Text reaches 4.5 : 1 on every step of the heat map. */
import { base, colours, parts } from "../../trace/report/Style.ts"

/** From nothing passed to everything passed, on light and on dark ground. */
const heat = `:root { --h0: #ffc9c4; --h1: #ffd9c2; --h2: #ffe8b8; --h3: #f3f0b4; --h4: #d9f2c4; --h5: #bdeccb; --hx: #e6e9ed; }
@media (prefers-color-scheme: dark) {
  :root { --h0: #5c1f22; --h1: #5b2c1c; --h2: #4d3a14; --h3: #414318; --h4: #28461f; --h5: #174a2b; --hx: #262c35; }
}
td.h0 { background: var(--h0); } td.h1 { background: var(--h1); } td.h2 { background: var(--h2); }
td.h3 { background: var(--h3); } td.h4 { background: var(--h4); } td.h5 { background: var(--h5); }
td.hx { background: var(--hx); }
.heat td { text-align: center; min-width: 4.2rem; border: 1px solid var(--ground); padding: .35rem .5rem; }
.heat td a { color: var(--text); display: block; text-decoration-thickness: 1px; text-underline-offset: 3px; }
.heat th[scope="row"] { font-weight: normal; color: var(--text); font-size: .9rem; white-space: nowrap; }
.scale { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; font-size: .85rem; color: var(--quiet); }
.scale .step { display: inline-block; width: 1.4rem; height: .9rem; border-radius: 3px; margin-right: .4rem; vertical-align: -2px; border: 1px solid var(--line); }
.step.s0 { background: var(--h0); } .step.s1 { background: var(--h1); } .step.s2 { background: var(--h2); }
.step.s3 { background: var(--h3); } .step.s4 { background: var(--h4); } .step.s5 { background: var(--h5); } .step.sx { background: var(--hx); }`

const rest = `.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; margin: .6rem 0; }
table { border-collapse: collapse; }
.wide { width: 100%; }
th { text-align: left; vertical-align: bottom; font-size: .8rem; color: var(--quiet); padding: .2rem .6rem .2rem 0; overflow-wrap: normal; }
th.share { text-align: center; padding: .2rem .4rem; }
.figures { grid-template-columns: repeat(auto-fit, minmax(7.2rem, 1fr)); }
.figures dt { overflow-wrap: normal; }
td { padding: .25rem .6rem .25rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
td.share { text-align: center; padding: .25rem .4rem; border: 1px solid var(--ground); white-space: nowrap; font-variant-numeric: tabular-nums; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { white-space: nowrap; }
td.reason { min-width: 18rem; white-space: pre-wrap; unicode-bidi: isolate; }
.pass { color: var(--good); } .fail, .errored { color: var(--bad); font-weight: 600; } .malformed, .deferred { color: var(--warn); font-weight: 600; }
article { border-left-width: 4px; }
article.red { border-color: var(--failed); } article.green { border-color: var(--tool); } article.open { border-color: var(--wait); }
.turnlist { list-style: none; padding: 0; margin: .5rem 0; }
.turnlist > li { border-left: 3px solid var(--line); padding: .1rem 0 .1rem .8rem; margin: .6rem 0; }
.turnlist > li.assistant { border-color: var(--model); } .turnlist > li.user { border-color: var(--wait); } .turnlist > li.tool { border-color: var(--tool); }
#filter { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; margin: .5rem 0 1rem; }
#filter label { display: block; font-size: .85rem; color: var(--quiet); }
#filter input, #filter select, #filter button { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--quiet); border-radius: 6px; padding: .35rem .6rem; min-height: 2.5rem; }
#filter input { width: min(24rem, 80vw); }
#found { color: var(--quiet); }
.long article { content-visibility: auto; contain-intrinsic-size: auto 14rem; }
@media (max-width: 45rem) { body { font-size: 15px; } article { padding-left: .7rem; } }
@media print {
  nav, .skip, #filter { display: none !important; }
  body { font-size: 10pt; } main { max-width: none; }
  .long article { content-visibility: visible; }
  pre { max-height: none; overflow: visible; } .scroll { overflow: visible; }
  h2, h3 { break-after: avoid; } tr { break-inside: avoid; }
  td, .badge, .step { print-color-adjust: exact; }
}`

export const style = `${colours}\n${base}\n${parts}\n${heat}\n${rest}\n`
