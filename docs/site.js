// Tables that are wider than the page scroll by keyboard too; the theme wraps them when the page is read.
addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    Object.assign(table, { tabIndex: 0, role: "region", ariaLabel: "Table" });
  }
});
