// The keys of a run's pages. It goes on from pages.js. Without this file everything but the keys works.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const main = find("#main");
  const steps = [...document.querySelectorAll("section.step[id]")];
  const follow = (selector) => find(selector)?.click();

  // The step that the reader is at: the one with the focus, else the last one that begins at the top of the window.
  function place() {
    const focused = steps.indexOf(document.activeElement?.closest("section.step"));
    return focused >= 0 ? focused : steps.findLastIndex((step) => step.getBoundingClientRect().top < 80);
  }

  function move(by) {
    const to = place() + by;
    if (!steps.length || to >= steps.length) return follow("#next");
    if (to < 0) return find("#back") ? follow("#back") : window.scrollTo(0, 0);
    steps.forEach((step) => step.classList.remove("here"));
    steps[to].classList.add("here");
    steps[to].scrollIntoView({ block: "start" });
    steps[to].focus({ preventScroll: true });
  }

  function unfold() {
    const all = [...main.querySelectorAll("details")];
    const folded = all.some((one) => !one.open);
    for (const one of all) one.open = folded;
    find("#unfold").textContent = folded ? "Fold all" : "Unfold all";
  }

  // Comparing takes two trials: a third one that is marked takes the place of the first.

  const marked = [];
  for (const box of document.querySelectorAll('input[name="trial"]')) {
    box.checked = false;
    box.addEventListener("change", () => {
      if (!box.checked) marked.splice(marked.indexOf(box), 1);
      else if (marked.push(box) > 2) marked.shift().checked = false;
    });
  }

  function compare(event) {
    event?.preventDefault();
    if (marked.length === 2) find("#compare").submit();
    else say(`Mark two trials to compare them; ${marked.length || "none"} of them ${marked.length === 1 ? "is" : "are"} marked.`);
  }
  find("#compare-two")?.addEventListener("click", compare);

  // A search that has looked as far as one page may looks on by itself, as long as it has found nothing.
  if (main.dataset.lookOn && main.dataset.rows === "0") {
    const on = setTimeout(() => window.location.replace(find("#next").href), 50);
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") clearTimeout(on); });
  }

  onButton("#unfold", unfold);
  if (find("#no-search")) toMark(1);
  const search = find("#search");

  takeKeys({
    j: () => move(1), ArrowRight: () => move(1), k: () => move(-1), ArrowLeft: () => move(-1),
    "/": () => { search?.focus(); search?.select(); },
    e: () => find("#unfold") && unfold(), o: () => follow("#to-list"), r: () => window.location.reload(),
    x: () => document.activeElement?.closest(".trial")?.querySelector('input[name="trial"]').click(),
    c: () => find("#compare-two") && compare(),
    Escape: () => follow("#no-search"),
  }, "jk");
});
