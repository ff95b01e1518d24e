/**
 * The page's script: search and filter of the event table, and unfolding what a link leads to. The page reads without it.
 * Only ever compares text and sets `hidden`, `open` and a counter's text.
 */

export const script = `"use strict";
(() => {
  const form = document.getElementById("filter");
  if (form === null) return;
  const search = document.getElementById("search");
  const kind = document.getElementById("kind");
  const found = document.getElementById("found");
  const portions = [...document.querySelectorAll("#events .portion")].map((element) => ({
    element,
    rows: [...element.querySelectorAll("tbody tr")].map((row) => ({ row, text: undefined }))
  }));
  const total = portions.reduce((sum, portion) => sum + portion.rows.length, 0);
  const apply = () => {
    const words = search.value.toLowerCase().split(/\\s+/).filter((word) => word !== "");
    let shown = 0;
    for (const { element, rows } of portions) {
      let here = 0;
      for (const one of rows) {
        const fits = (kind.value === "" || (kind.value === "failed" ? one.row.classList.contains("failed") : one.row.classList.contains("k-" + kind.value))) &&
          (words.length === 0 || words.every((word) => (one.text ??= one.row.textContent.toLowerCase()).includes(word)));
        one.row.hidden = !fits;
        if (fits) here += 1;
      }
      element.hidden = here === 0;
      shown += here;
    }
    found.textContent = words.length === 0 && kind.value === "" ? "" : shown + " of " + total + " rows";
  };
  let frame = 0;
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(apply);
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  search.addEventListener("input", soon);
  kind.addEventListener("change", apply);
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    search.focus();
  });
})();
`
