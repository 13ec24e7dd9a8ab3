"use strict";
(() => {
  const root = document.documentElement;
  const $ = window.cultureval && window.cultureval.jQuery;
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  root.classList.add("script");

  // Names break after their separators and before capitals, not within words.
  const breaks = /(?<=[-_:/|@])(?=[\p{L}\p{N}])|(?<=\p{Ll}{2})(?=\p{Lu})/u;
  function breakable(name) {
    const [first, ...rest] = name.textContent.split(breaks);
    name.replaceChildren(first, ...rest.flatMap((part) => [document.createElement("wbr"), part]));
    return name;
  }
  all("h1 bdi, .lead bdi, th.model > bdi, th.model > a > bdi").forEach(breakable);

  // Dark and light: as the system, or as chosen; a page from a file system may have no storage.
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const keep = (name) => { try { localStorage.setItem("theme", name); } catch { /* it holds for this page */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.classList.contains("dark");
  function setTheme(dark) {
    root.classList.toggle("dark", dark);
    root.classList.toggle("light", !dark);
  }
  setTheme(stored() ? stored() === "dark" : system.matches);
  system.addEventListener("change", () => { if (!stored()) { setTheme(system.matches); redrawCharts(); } });
  byId("theme").addEventListener("click", () => { setTheme(!isDark()); keep(isDark() ? "dark" : "light"); redrawCharts(); });

  // Tables: sorted by a click or Enter on a column's head; filtered by what the rows say of their models.
  const tables = new Map();
  const chosen = { search: "", family: "", size: "", licence: "" };
  function fits(row) {
    const data = row.dataset;
    if (chosen.search && !(data.model ?? row.textContent).toLowerCase().includes(chosen.search)) return false;
    if (data.family === undefined) return true;
    if (chosen.family && data.family !== chosen.family) return false;
    if (chosen.licence && data.licence !== chosen.licence) return false;
    if (!chosen.size) return true;
    if (chosen.size === "unknown") return data.size === "";
    const [low, high] = chosen.size.split("-").map(Number);
    return data.size !== "" && Number(data.size) > low && Number(data.size) <= high;
  }
  if ($) {
    $.fn.dataTable.ext.errMode = "none";
    $.fn.dataTable.ext.search.push((settings, _values, place) => fits(settings.aoData[place].nTr));
  }
  function activate(panel) {
    for (const table of all("table.scores", panel)) {
      if (!$ || tables.has(table)) continue;
      tables.set(table, $(table).DataTable({ paging: false, info: false, order: [], autoWidth: false, tabIndex: -1, layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null } }));
      rove(table.closest(".scroll"));
    }
    all(".chart", panel).forEach(drawChart);
  }
  function filter() {
    for (const [table, one] of tables) if (table.closest(".panel.open")) one.draw();
    const shown = (kind) => new Set(all(`.panel.open tbody tr[data-model]${kind}`).map((row) => row.dataset.of)).size;
    const models = shown(":not(.paper)"), papers = shown(".paper"), out = byId("matching");
    const of = papers ? `, ${papers} of papers` : "";
    if (out) out.textContent = `${models} model${models === 1 ? "" : "s"} shown${of}`;
  }

  // One Tab stop a table: arrow keys move among its links and buttons, and scroll it where there are none.
  const stops = "a, button, .dt-column-order[role=button]";
  function rest(region, stop) {
    all(stops, region).forEach((one) => { one.tabIndex = one === stop ? 0 : -1; });
    region.tabIndex = stop ? -1 : 0;
  }
  function rove(region) {
    const rows = () => all("tr", region).map((row) => all(stops, row)).filter((row) => row.length);
    const next = (key, row, place, found) => ({
      ArrowRight: found[row][place + 1], ArrowLeft: found[row][place - 1], Home: found[row][0], End: found[row].at(-1),
      ArrowDown: found[row + 1] && found[row + 1][Math.min(place, found[row + 1].length - 1)],
      ArrowUp: found[row - 1] && found[row - 1][Math.min(place, found[row - 1].length - 1)],
    })[key];
    region.addEventListener("focusin", (event) => { const stop = event.target.closest(stops); if (stop) rest(region, stop); });
    region.addEventListener("keydown", (event) => {
      const stop = event.target.closest(stops), found = rows(), row = found.findIndex((one) => one.includes(stop));
      if (row < 0) return;
      const to = next(event.key, row, found[row].indexOf(stop), found);
      if (to) to.focus();
      if (event.key === " " && stop.matches(".dt-column-order")) stop.click();
      if (to || (event.key === " " && stop.matches(".dt-column-order"))) event.preventDefault();
    });
    $(region).on("draw.dt", () => { if (!region.querySelector('[tabindex="0"]')) rest(region, rows().flat()[0]); });
    rest(region, rows().flat()[0]);
  }

  // Charts, drawn when their tab is first open.
  const drawn = new Map();
  function chartConfig() {
    const ink = isDark() ? "#e6e9ed" : "#1b1f24", line = isDark() ? "#3a434e" : "#dde2e7";
    const axis = { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line };
    return { background: "transparent", axis, legend: { labelColor: ink, titleColor: ink }, header: { labelColor: ink, titleColor: ink }, text: { color: ink }, rule: { color: ink }, view: { stroke: line }, title: { color: ink } };
  }
  // Panels and legends in as many columns as there is room for; the points of a narrow plot have no names.
  function fitted(spec, room) {
    if (spec.columns) spec.columns = Math.max(1, Math.min(spec.columns, Math.floor(room / (spec.spec.width + 20))));
    for (const { encoding } of (spec.spec || spec).layer || []) {
      const legend = encoding && encoding.color && encoding.color.legend;
      if (legend) Object.assign(legend, { columns: Math.max(1, Math.min(4, Math.floor(room / 280))), labelLimit: Math.min(240, room - 60) });
    }
    if (spec.layer && room < spec.width + 60) spec.layer = spec.layer.filter((one) => one.mark.type !== "text");
  }
  // How much wider than its room a chart may be drawn is known afterwards, with its names: then it is made to fit.
  function refitted(spec, room, drawn) {
    if (drawn > room && spec.columns > 1) spec.columns -= 1;
    else if (drawn > room && spec.layer && !spec.autosize) Object.assign(spec, { width: room, autosize: { type: "fit-x", contains: "padding" } });
    else if (spec.columns === 1 && !spec.usermeta.fits) {
      spec.usermeta.fits = true;
      spec.spec.width = Math.max(60, Math.min(260, spec.spec.width + Math.floor(room - drawn)));
    } else return false;
    return true;
  }
  function drawChart(place) {
    if (!window.vegaEmbed || drawn.has(place)) return;
    const spec = JSON.parse(byId(place.dataset.spec).textContent);
    fitted(spec, place.closest(".panel").clientWidth);
    drawn.set(place, spec);
    embed(place, spec);
  }
  function embed(place, spec) {
    const options = { ast: true, renderer: "svg", actions: false, defaultStyle: false, config: chartConfig(), tooltip: { disableDefaultStyle: true } };
    window.vegaEmbed(place, spec, options).then(() => {
      const width = place.querySelector("svg").getBoundingClientRect().width;
      if (refitted(spec, place.closest(".panel").clientWidth, width)) embed(place, spec); else place.dataset.drawn = "1";
    }, (error) => { place.textContent = String(error); });
  }
  function redrawCharts() { for (const [place, spec] of drawn) embed(place, spec); }

  // Tabs: arrow keys move, the address keeps the choice.
  const tabs = all("[role=tab]");
  function open(tab, focus) {
    for (const one of tabs) {
      const here = one === tab;
      one.setAttribute("aria-selected", String(here));
      one.tabIndex = here ? 0 : -1;
      byId(one.getAttribute("aria-controls")).classList.toggle("open", here);
    }
    tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    activate(byId(tab.getAttribute("aria-controls")));
    filter();
    if (focus) tab.focus();
  }
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => { open(tab); history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`); });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : step ? (place + step + tabs.length) % tabs.length : null;
      if (next !== null) { event.preventDefault(); open(tabs[next], true); }
    });
  });

  // Means over a selection of subsets.
  const data = byId("subset-data") && JSON.parse(byId("subset-data").textContent);
  const fields = ["metric", "benchmark", "domain", "task_type", "register", "language"];
  const select = (name) => document.querySelector(`#subset-filters [data-field=${name}]`);
  function fill(element, values, everything) {
    const before = element.value;
    element.replaceChildren(...(everything ? [["", "all"]] : []).concat(values).map(([value, text]) => new Option(text, value)));
    if ([...element.options].some((one) => one.value === before)) element.value = before;
  }
  function element(name, text, properties = {}) {
    const made = Object.assign(document.createElement(name), properties);
    if (text !== null) made.textContent = text;
    return made;
  }
  function selection() {
    const suite = data[Number(select("suite").value)];
    const places = [];
    suite.tasks.forEach((task, place) => {
      if (fields.every((field) => !select(field).value || task[field] === select(field).value)) places.push(place);
    });
    return { suite, places };
  }
  function choices() {
    const suite = data[Number(select("suite").value)];
    for (const field of fields) {
      const values = [...new Set(suite.tasks.map((task) => task[field]))].sort().map((value) => [value, value]);
      fill(select(field), values, true);
    }
  }
  function means() {
    const { suite, places } = selection();
    const metrics = new Set(places.map((place) => suite.tasks[place].metric));
    const rows = suite.models.map((model) => {
      const known = places.filter((place) => model.scores[place] !== null);
      const whole = known.length === places.length && known.length > 0;
      const mean = whole ? known.reduce((sum, place) => sum + model.scores[place], 0) / known.length : null;
      const errors = known.map((place) => model.errors[place]);
      const ordered = whole && known.every((place) => model.orders[place] !== null);
      const order = ordered ? known.reduce((sum, place) => sum + model.orders[place], 0) / known.length : null;
      const error = whole && errors.every((one) => one !== null) ? Math.hypot(...errors) / known.length : null;
      return { model, known: known.length, mean, order, error, n: known.reduce((sum, place) => sum + model.n[place], 0) };
    });
    const sign = places.length && places.every((place) => suite.tasks[place].lower) ? -1 : 1;
    // What a model lacks counts as the worst; where nothing is the worst, or no item proves a score, it stands below.
    const place = (row) => (row.mean === null ? -Infinity : row.order === null ? -Number.MAX_VALUE : sign * row.order);
    rows.sort((one, other) => place(other) - place(one) || sign * (other.mean - one.mean));
    const lines = rows.map(({ model, known, mean, order, error, n }) => {
      const line = element("tr", null);
      Object.assign(line.dataset, { model: model.label, of: model.of, family: model.family, licence: model.licence, size: model.billions ?? "" });
      const head = element("th", null, { className: "model", scope: "row" });
      const link = element("a", null, { href: model.href });
      link.append(breakable(element("bdi", model.label)));
      head.append(link);
      if (model.marks.length) {
        const marks = element("span", null, { className: "marks" });
        marks.append(...model.marks.map((mark) => element("span", mark, { className: "mark" })));
        head.append(" ", marks);
      }
      const cell = element("td", mean === null ? "n/a" : mean.toFixed(4));
      cell.dataset.order = order ?? -1e9;
      if (error !== null) cell.append(element("span", `\u00b1${error.toFixed(4)}`, { className: "error" }));
      line.append(head, cell, element("td", n.toLocaleString("en")), element("td", `${known}/${places.length}`));
      return line;
    });
    const table = tables.get(byId("means"));
    if (table) { table.clear(); table.rows.add(lines); table.order([]); filter(); } else byId("means").tBodies[0].replaceChildren(...lines);
    const mixed = metrics.size > 1 ? ` Metrics are mixed (${[...metrics].sort().join(", ")}): choose one.` : "";
    byId("chosen").textContent = `${places.length} of ${suite.tasks.length} subsets. The error takes subsets as independent.${mixed}`;
    byId("chosen-tasks").replaceChildren(...places.map((place) => {
      const item = element("li", null), link = element("a", null, { href: suite.tasks[place].href });
      link.append(breakable(element("bdi", suite.tasks[place].name)));
      item.append(link);
      return item;
    }));
  }
  if (data && select("suite")) {
    fill(select("suite"), data.map((suite, place) => [String(place), suite.name]), false);
    choices();
    select("suite").addEventListener("change", () => { choices(); means(); });
    for (const field of fields) select(field).addEventListener("change", means);
    byId("tab-subsets").addEventListener("click", means);
    means();
  }

  for (const name of Object.keys(chosen)) {
    const control = byId(name);
    if (control) control.addEventListener("input", () => { chosen[name] = name === "search" ? control.value.trim().toLowerCase() : control.value; filter(); });
  }
  const narrow = byId("filters");
  if (narrow) narrow.open = innerWidth > 640;
  const wanted = tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash) || tabs[0];
  if (wanted) open(wanted); else all(".panel").forEach((panel) => activate(panel));
  root.dataset.ready = String(Math.round(performance.now()));
})();
