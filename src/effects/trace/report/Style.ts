/** The page's style: light and dark, wide and narrow, screen and paper. All colours of text reach 4.5 : 1 on their ground. */

export const colours = `:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f4f6f8; --line: #d0d7de; --text: #1b1f24; --quiet: #535b65; --link: #0757b8;
  --good: #0f5c27; --good-ground: #dff7e5; --bad: #9f1022; --bad-ground: #ffe9e7; --warn: #704600; --warn-ground: #fff4cc;
  --model: #1f6feb; --tool: #1a7f37; --context: #76818d; --wait: #a06a00; --failed: #cf222e; --mark: #6b3fa0;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #0e1218; --raised: #171c24; --line: #343c47; --text: #e6ebf1; --quiet: #a0a9b4; --link: #74b0ff;
    --good: #6fdc8c; --good-ground: #11301c; --bad: #ffa198; --bad-ground: #43181b; --warn: #f0c35a; --warn-ground: #38290a;
    --model: #4c8dff; --tool: #35a855; --context: #7b8794; --wait: #d29922; --failed: #f85149; --mark: #c9a8ff;
  }
}`

export const base = `* { box-sizing: border-box; }
html { scroll-padding-top: 3.5rem; }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main, header, footer { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 1.25rem 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
h4 { font-size: 1rem; margin: 0 0 .25rem; }
h5 { font-size: .85rem; margin: .6rem 0 .2rem; color: var(--quiet); }
p { margin: .4rem 0; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
:target { outline: 2px solid var(--link); outline-offset: 3px; }
code, pre, td, .ctl { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .86em; }
pre { margin: .2rem 0; padding: .5rem .7rem; background: var(--raised); border: 1px solid var(--line); border-radius: 6px;
  white-space: pre-wrap; max-height: 26rem; overflow: auto; unicode-bidi: isolate; }
.ctl { color: var(--mark); border: 1px dotted var(--mark); border-radius: 3px; padding: 0 .15em; }
.quiet, .at { color: var(--quiet); }
.at { font-weight: normal; font-size: .85rem; }
.cut { color: var(--warn); font-style: italic; }
.why { color: var(--bad); margin: .3rem 0; }
.course { color: var(--quiet); margin: .3rem 0; }
summary { cursor: pointer; color: var(--quiet); padding: .15rem 0; }
[hidden] { display: none !important; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--ground); padding: .5rem; z-index: 2; }
nav { position: sticky; top: 0; z-index: 1; background: var(--ground); border-bottom: 1px solid var(--line); }
nav ul { display: flex; gap: 0 1.1rem; max-width: 72rem; margin: 0 auto; padding: .1rem 1rem; list-style: none; overflow-x: auto; }
nav a { display: block; padding: .55rem 0; text-decoration: none; white-space: nowrap; }
nav a:hover { text-decoration: underline; }
footer { margin-top: 3rem; padding: 1rem; color: var(--quiet); font-size: .85rem; border-top: 1px solid var(--line); }`

export const parts = `.badges { display: flex; flex-wrap: wrap; gap: .3rem; margin: .3rem 0; }
.badge { border-radius: 1rem; padding: .05rem .6rem; font-size: .85rem; border: 1px solid currentColor; }
.lead .badge { font-size: 1rem; padding: .2rem .8rem; font-weight: 600; }
.badge.good { color: var(--good); background: var(--good-ground); }
.badge.bad { color: var(--bad); background: var(--bad-ground); }
.badge.warn { color: var(--warn); background: var(--warn-ground); }
.badge.quiet { border-color: var(--line); background: var(--raised); }
dl { margin: 1rem 0; }
dd { margin: 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(6.2rem, 1fr)); gap: .5rem; }
.figures div { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: .4rem .6rem; }
.figures dd { font-size: 1.15rem; font-weight: 600; white-space: nowrap; }
.figures dt { color: var(--quiet); font-size: .85rem; }
.about div { display: grid; grid-template-columns: 5.5rem 1fr; gap: .5rem; }
.about dt { color: var(--quiet); }
article { border-left: 4px solid var(--line); padding: .1rem 0 .3rem .9rem; margin: 1rem 0; }
article h3 { margin-top: 0; }
article.user { border-color: var(--wait); }
article.turn { border-color: var(--model); }
article.feedback { border-color: var(--failed); }
article.rolled { border-left-style: dashed; border-color: var(--failed); }
.call { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; margin: .6rem 0; }
.kind, h4 .quiet { color: var(--quiet); font-weight: normal; font-size: .9rem; }
.said pre, article > pre { font: inherit; }
.said.answer pre { border-color: var(--good); border-width: 2px; }
.artifact { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; margin: .6rem 0; }
.artifact h3 { margin: 0; }
.gauges { list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .8rem 2rem; }
.gauges li { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; }
.used { color: var(--quiet); }
.gauge .track { fill: var(--line); } .gauge .fine { fill: var(--model); } .gauge .near { fill: var(--wait); } .gauge .full { fill: var(--failed); }
.problems { padding-left: 1.2rem; }`

const pictures = `.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; }
.timeline { min-width: 40rem; display: block; overflow: visible; }
.timeline text { fill: var(--quiet); font-size: 12px; }
.timeline .lane { fill: var(--text); font-weight: 600; font-size: 13px; }
.tick { stroke: var(--line); stroke-dasharray: 2 3; }
.bar { stroke-width: 1.5; }
.bar.model { fill: var(--model); stroke: var(--model); }
.bar.tool { fill: var(--tool); stroke: var(--tool); }
.bar.context { fill: var(--context); stroke: var(--context); }
.bar.wait { fill: var(--wait); stroke: var(--wait); }
.bar.bad { fill: var(--failed); stroke: var(--failed); }
.bar.rolled { fill: var(--bad-ground); stroke: var(--failed); }
.bar.open { fill-opacity: .25; stroke-dasharray: 4 3; }
.hatch { fill: url(#hatching); } .stripe { fill: var(--failed); }
.attempt { fill: var(--ground); stroke: var(--text); stroke-width: .75; }
.timeline a:hover .bar, .timeline a:focus-visible .bar { stroke: var(--text); stroke-width: 3; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; font-size: .85rem; color: var(--quiet); }
.key { display: inline-block; width: 1.4rem; height: .8rem; border-radius: 3px; margin-right: .4rem; border: 1.5px solid var(--failed); vertical-align: -1px; }
.key.good { background: linear-gradient(90deg, var(--context) 33%, var(--model) 33% 66%, var(--tool) 66%); border-color: transparent; }
.key.bad { background: var(--failed); }
.key.rolled { background: repeating-linear-gradient(135deg, var(--failed) 0 3px, var(--bad-ground) 3px 7px); }
.key.open { border: 1.5px dashed var(--quiet); }`

const table = `#filter { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; margin: .5rem 0 1rem; }
#filter label { display: block; font-size: .85rem; color: var(--quiet); }
.pager { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .5rem 0; } .pager .extent { color: var(--quiet); padding: 0 .3rem; min-width: 12rem; text-align: center; }
.pager label { margin-left: auto; color: var(--quiet); font-size: .85rem; } .pager input { width: 7rem; }
button { cursor: pointer; } button:disabled { cursor: default; opacity: .5; }
#filter input, #filter select, #filter button, .pager button, .pager input { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--quiet); border-radius: 6px; padding: .35rem .6rem; min-height: 2.5rem; }
#filter input { width: min(24rem, 80vw); }
#found { color: var(--quiet); }
.long .portion { content-visibility: auto; contain-intrinsic-size: auto 3400px; }
.long article { content-visibility: auto; contain-intrinsic-size: auto 22rem; }
table { width: 100%; table-layout: fixed; border-collapse: collapse; }
th { text-align: left; font-size: .8rem; color: var(--quiet); }
th, td { padding: .2rem .5rem .2rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
th:nth-child(1) { width: 4rem; } th:nth-child(2) { width: 5.2rem; } th:nth-child(3) { width: 9rem; } th:nth-child(4) { width: 14rem; }
.n { font-variant-numeric: tabular-nums; }
tr.failed td:nth-child(4) { color: var(--bad); font-weight: 600; }
td summary { padding: 0; }
@media (max-width: 45rem) {
  body { font-size: 15px; }
  thead { position: absolute; left: -99rem; }
  tr { display: grid; grid-template-columns: auto auto 1fr; gap: 0 .8rem; border-bottom: 1px solid var(--line); padding: .35rem 0; }
  td { border: 0; padding: 0; } td:nth-child(3) { color: var(--quiet); } td:nth-child(4) { grid-column: 1 / -1; font-weight: 600; } td.data { grid-column: 1 / -1; }
  article { padding-left: .7rem; } .call, .artifact { padding: .5rem .6rem; }
  .pager .extent { order: -1; flex-basis: 100%; text-align: left; padding: 0; }
  .about div { grid-template-columns: 1fr; gap: 0; margin-bottom: .4rem; }
}
@media print {
  :root { color-scheme: light; }
  nav, .skip, #filter, .pager { display: none !important; }
  body { font-size: 10pt; } main { max-width: none; }
  .long article, .long .portion { content-visibility: visible; }
  pre { max-height: none; overflow: visible; }
  details::details-content { content-visibility: visible; block-size: auto; }
  h2, h3, h4 { break-after: avoid; } .call, .artifact, tr { break-inside: avoid; }
  .scroll { overflow: visible; } .timeline { min-width: 0; }
  .rows.long { display: none; }
  .bar, .gauge rect, .badge, .key { print-color-adjust: exact; }
}
@media screen { .paper { display: none; } }`

export const style = `${colours}\n${base}\n${parts}\n${pictures}\n${table}\n`
