"use strict";
(() => {
  const table = document.getElementById("findings-table");
  if (table) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const words = document.getElementById("filter-words");
    const severity = document.getElementById("filter-severity");
    const kind = document.getElementById("filter-kind");
    const shown = document.getElementById("findings-shown");
    const text = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const filter = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of rows) {
        const fits = (!severity.value || row.dataset.severity === severity.value) &&
          (!kind.value || row.dataset.kind === kind.value) &&
          wanted.every((word) => text.get(row).includes(word));
        row.hidden = !fits;
        count += fits ? 1 : 0;
      }
      shown.textContent = count === rows.length ? "" : `${count.toLocaleString("en-US")} match`;
    };
    for (const field of [words, severity, kind]) field.addEventListener("input", filter);
    filter();
  }
  const rank = { error: 0, warning: 1, info: 2 };
  const keyOf = (cell) => {
    const number = cell.classList.contains("n") ? cell.querySelector("[data-value]")?.dataset.value ?? "" : null;
    const own = cell.dataset.sort ?? number ?? cell.textContent.trim();
    if (own in rank) return rank[own];
    return own !== "" && Number.isFinite(Number(own)) ? Number(own) : own;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const body = head.closest("table").tBodies[0];
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = Array.from(body.rows, (row) => [keyOf(row.cells[head.cellIndex]), row]);
      keyed.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
      body.append(...keyed.map((each) => each[1]));
    });
  }
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
  });
})();
