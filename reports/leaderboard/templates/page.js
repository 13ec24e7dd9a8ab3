"use strict";
(() => {
  const root = document.documentElement, all = (selector, from = document) => [...from.querySelectorAll(selector)];
  root.classList.add("script");

  // Dark and light: as the system, or as chosen; a page from a file system may have no storage.
  const kept = (name) => { try { if (name) localStorage.setItem("theme", name); return localStorage.getItem("theme"); } catch { return null; } };
  const setTheme = (name) => { root.classList.remove("dark", "light"); root.classList.add(name); };
  if (kept()) setTheme(kept() === "dark" ? "dark" : "light");
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    setTheme(isDark ? "light" : "dark");
    kept(isDark ? "light" : "dark");
  });

  // Names break after their separators, not within words.
  for (const name of all("h1 bdi, th.model bdi")) {
    const [first, ...rest] = name.textContent.split(/(?<=[-_:/|@])(?=[\p{L}\p{N}])/u);
    name.replaceChildren(first, ...rest.flatMap((part) => [document.createElement("wbr"), part]));
  }

  // A click on a column's head sorts the rows of each part of the table; what has no number stays below.
  function sort(head, place) {
    const table = head.closest("table"), ascending = head.getAttribute("aria-sort") === "descending";
    for (const one of all("th[aria-sort]", table)) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const value = (row) => row.cells[place].dataset.order === "" ? null : Number(row.cells[place].dataset.order);
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => row.cells.length > 1);
      rows.sort((one, other) => {
        const [a, b] = [value(one), value(other)];
        return a === null || b === null ? (a === null) - (b === null) : ascending ? a - b : b - a;
      });
      body.append(...rows);
    }
  }
  for (const table of all("table")) {
    const skipped = all("thead th[rowspan='2']", table).length;
    for (const head of all("th.sorts", table)) {
      const place = head.cellIndex + (skipped && head.parentElement.rowIndex ? skipped : 0), button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(head, place));
      head.append(button);
    }
  }

  // Search, and tabs: arrow keys move, the address keeps the choice.
  const search = document.getElementById("search"), tabs = all("[role=tab]");
  function filter() {
    if (!search) return;
    const wanted = search.value.trim().toLowerCase(), rows = all("tbody tr").filter((row) => row.cells.length > 1);
    for (const row of rows) row.hidden = !row.cells[0].querySelector("bdi").textContent.toLowerCase().includes(wanted);
    const shown = rows.filter((row) => !row.hidden && row.closest(".open")).length;
    document.getElementById("matching").textContent = wanted ? `${shown} row${shown === 1 ? "" : "s"} shown` : "";
  }
  function open(tab) {
    for (const one of tabs) {
      one.setAttribute("aria-selected", String(one === tab));
      one.tabIndex = one === tab ? 0 : -1;
      document.getElementById(one.getAttribute("aria-controls")).classList.toggle("open", one === tab);
    }
    tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    filter();
  }
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => { open(tab); history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`); });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -place, End: tabs.length - 1 - place }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const next = tabs[(place + step + tabs.length) % tabs.length];
      open(next);
      next.focus();
    });
  });
  if (search) search.addEventListener("input", filter);
  if (tabs.length) open(tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash) || tabs[0]);
  root.dataset.ready = "1";
})();
