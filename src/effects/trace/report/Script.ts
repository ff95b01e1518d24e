/**
 * The page's script: search and filter of the event table, and of a long trace its pages, drawn from the packed events. The
 * page reads without it. What it shows of the trace it shows as text, and what nobody would see by its code.
 */
import { unseen } from "../Unseen.ts"

/** Rows of a page: what one table of a long trace has in the document. */
export const pageRows = 500

const frame = `  const form = document.getElementById("filter");
  if (form === null) return;
  const byId = (id) => document.getElementById(id);
  const [search, kind, found] = ["search", "kind", "found"].map(byId);
  const kinds = [...kind.options].slice(2).map((option) => option.value);
  const asked = () => ({ words: search.value.toLowerCase().split(/\\s+/).filter((word) => word !== ""), kind: kind.value });
  const grouped = (count) => String(count).replace(/\\B(?=(?:\\d{3})+(?!\\d))/g, count >= 10000 ? "\\u202f" : "");
  const counted = (shown, total, { kind, words }) => {
    found.textContent = words.length === 0 && kind === "" ? "" : grouped(shown) + " of " + grouped(total) + " rows";
  };
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className !== "") element.className = className;
    if (text !== undefined) put(element, text);
    return element;
  };
  const put = (element, text) => {
    let at = 0;
    for (const { 0: character, index } of text.matchAll(/${unseen.source}/g)) {
      const point = character.codePointAt(0);
      const digits = point.toString(16);
      const mark = document.createElement("span");
      mark.className = "ctl";
      mark.textContent = point > 0xffff ? "\\\\u{" + digits + "}" : "\\\\u" + digits.padStart(4, "0");
      element.append(text.slice(at, index), mark);
      at = index + character.length;
    }
    element.append(text.slice(at));
  };`

/** All rows are in the document: those that do not fit are hidden. */
const short = `  const rowsOnPage = () => {
    const portions = [...document.querySelectorAll("#events .portion")].map((element) => ({
      element,
      rows: [...element.querySelectorAll("tbody tr")].map((row) => ({ row, text: undefined }))
    }));
    const total = portions.reduce((sum, portion) => sum + portion.rows.length, 0);
    return () => {
      const question = asked();
      let shown = 0;
      for (const { element, rows } of portions) {
        let here = 0;
        for (const one of rows) {
          const { classList } = one.row;
          const fits =
            (question.kind === "" || classList.contains(question.kind === "failed" ? "failed" : "k-" + question.kind)) &&
            question.words.every((word) => (one.text ??= one.row.textContent.toLowerCase()).includes(word));
          one.row.hidden = !fits;
          if (fits) here += 1;
        }
        element.hidden = here === 0;
        shown += here;
      }
      counted(shown, total, question);
    };
  };`

/** A row is made of its packed line when its page is shown. */
const row = `  const rowOf = (line) => {
    const [mark, whole, seq, seconds, place, type, ...rest] = line.split("\\t");
    const data = rest.join("\\t");
    const row = make("tr", "k-" + kinds[mark[0]] + (mark[1] === "!" ? " failed" : ""));
    row.id = "event-" + seq;
    row.append(make("td", "n", seq), make("td", "n", seconds), make("td", "", place), make("td", "", type));
    const cell = make("td", "data");
    if (whole === "" && data.length <= 400) put(cell, data);
    else {
      const details = make("details", "");
      const box = make("pre", "", data);
      if (whole !== "") box.append(make("span", "cut", "\\n… cut: " + grouped(data.length) + " of " + grouped(Number(whole)) + " characters are shown"));
      details.append(make("summary", "", data.slice(0, 120) + "…"), box);
      cell.append(details);
    }
    row.append(cell);
    return row;
  };`

const long = `  const packed = async (packs) => {
    const blocks = [];
    for (const pack of packs) {
      const bytes = Uint8Array.from(atob(pack.textContent.trim()), (character) => character.charCodeAt(0));
      const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      blocks.push((await new Response(text).text()).split("\\n"));
    }
    for (const pack of packs) pack.remove();
    return blocks;
  };
  const pages = (blocks) => {
    const lines = blocks.flat();
    const area = document.querySelector("#events .rows");
    const head = area.querySelector("thead").cloneNode(true);
    const pagers = [...document.querySelectorAll(".pager")];
    const seqOf = (line) => Number(line.split("\\t", 3)[2]);
    let rows = lines;
    let first = 0;
    let asking = 0;
    const show = (at) => {
      first = Math.max(0, Math.min(at, Math.floor((rows.length - 1) / ${pageRows}) * ${pageRows}));
      const shown = rows.slice(first, first + ${pageRows});
      const portions = [];
      for (let from = 0; from < shown.length; from += 100) {
        const [portion, table, body] = [make("div", "portion"), make("table", ""), make("tbody", "")];
        body.append(...shown.slice(from, from + 100).map(rowOf));
        table.append(head.cloneNode(true), body);
        portion.append(table);
        portions.push(portion);
      }
      area.replaceChildren(...portions);
      for (const pager of pagers) {
        pager.querySelector(".extent").textContent =
          rows.length === 0 ? "no rows" : grouped(first + 1) + " to " + grouped(first + shown.length) + " of " + grouped(rows.length);
        for (const button of pager.querySelectorAll("button")) {
          button.disabled = button.dataset.to === "back" || button.dataset.to === "first" ? first === 0 : first + ${pageRows} >= rows.length;
        }
      }
    };
    const matching = async (question, mine) => {
      const matches = [];
      let pause = performance.now() + 12;
      for (const block of blocks) {
        const lower = question.words.length === 0 ? block : block.join("\\n").toLowerCase().split("\\n");
        for (const [index, line] of block.entries()) {
          const fits =
            question.kind === "" || (question.kind === "failed" ? line[1] === "!" : kinds[line[0]] === question.kind);
          if (!fits) continue;
          const text = lower[index];
          const from = text.indexOf("\\t", 3) + 1;
          if (question.words.every((word) => text.includes(word, from))) matches.push(line);
        }
        if (performance.now() < pause) continue;
        await new Promise((resolve) => setTimeout(resolve));
        if (mine !== asking) return undefined;
        pause = performance.now() + 12;
      }
      return matches;
    };
    const ask = async () => {
      const question = asked();
      const mine = ++asking;
      const matches = question.kind === "" && question.words.length === 0 ? lines : await matching(question, mine);
      if (matches === undefined || mine !== asking) return;
      rows = matches;
      show(0);
      counted(rows.length, lines.length, question);
    };
    const turn = { first: () => 0, back: () => first - ${pageRows}, on: () => first + ${pageRows}, last: () => rows.length - 1 };
    const go = (seq) => {
      const at = rows.findIndex((line) => seqOf(line) >= seq);
      show(Math.floor((at < 0 ? rows.length - 1 : at) / ${pageRows}) * ${pageRows});
      const row = byId("event-" + seq);
      row?.scrollIntoView({ block: "center" });
      return row;
    };
    const follow = () => {
      const seq = /^#event-(\\d+)$/.exec(location.hash)?.[1];
      if (seq === undefined || byId("event-" + seq) !== null) return;
      asking += 1;
      rows = lines;
      search.value = kind.value = found.textContent = "";
      // A row that was not there could not be the target: it is pointed at again.
      if (go(Number(seq)) !== undefined) location.replace(location.hash);
    };
    for (const pager of pagers) {
      pager.hidden = false;
      pager.addEventListener("click", ({ target }) => {
        const to = turn[target.dataset.to];
        if (to === undefined) return;
        show(to());
        if (pager.classList.contains("below")) byId("h-events").scrollIntoView();
      });
      pager.querySelector("input")?.addEventListener("change", ({ target }) => {
        if (target.value !== "") go(Number(target.value));
      });
    }
    byId("left-out").hidden = true;
    addEventListener("hashchange", follow);
    show(0);
    follow();
    return ask;
  };`

const start = `  let apply = rowsOnPage();
  const packs = [...document.querySelectorAll("script.pack")];
  if (packs.length > 0 && "DecompressionStream" in window) {
    // Where it cannot be unpacked the rows that are on the page stay.
    packed(packs).then((blocks) => {
      apply = pages(blocks);
      document.querySelector("#events .rows").classList.add("paged");
      apply();
    }, () => {});
  }
  let frame = 0;
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => apply());
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => apply()));
  search.addEventListener("input", soon);
  kind.addEventListener("change", () => apply());
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    search.focus();
  });`

export const script = `"use strict";
(() => {
${frame}
${short}
${row}
${long}
${start}
})();
`
