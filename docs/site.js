// The search has a name. Tables that are wider than the page scroll by keyboard too; the theme wraps them when the page
// is read.
addEventListener("load", () => {
  document.querySelector(".md-search").ariaLabel = "Search";
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((table, place) => {
    Object.assign(table, { tabIndex: 0, role: "region", ariaLabel: `Table ${place + 1}` });
  });
});
