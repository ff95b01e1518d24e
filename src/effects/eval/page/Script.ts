/** The page's script: search and filter of the conversations. The page reads without it; it only compares text and sets `hidden`. */

export const script = `"use strict";
(() => {
  const form = document.getElementById("filter");
  if (form === null) return;
  const search = document.getElementById("search");
  const outcome = document.getElementById("outcome");
  const found = document.getElementById("found");
  const rows = [...document.querySelectorAll("#conversations tbody tr")].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const apply = () => {
    const words = search.value.toLowerCase().split(/\\s+/).filter((word) => word !== "");
    let shown = 0;
    for (const { row, text } of rows) {
      const fits = (outcome.value === "" || row.classList.contains("has-" + outcome.value)) && words.every((word) => text.includes(word));
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    found.textContent = words.length === 0 && outcome.value === "" ? "" : shown + " of " + rows.length + " conversations";
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  search.addEventListener("input", apply);
  outcome.addEventListener("change", apply);
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    search.focus();
  });
})();
`
