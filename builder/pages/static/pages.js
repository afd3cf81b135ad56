// What all pages share: the theme, the help, long texts that are fetched in portions, marks, and keys. Without this file
// everything but these works.
"use strict";

const THEMES = ["auto", "light", "dark"];

function storageItem(store, key, value) {
  try { // the browser's storage may be switched off
    if (value === undefined) return store().getItem(key);
    store().setItem(key, value);
  } catch { /* then nothing is remembered */ }
  return null;
}

const local = () => window.localStorage;
document.documentElement.dataset.theme = storageItem(local, "theme") || "auto";

const find = (selector) => document.querySelector(selector);

function say(text, at) {
  const problem = find("#problem");
  problem.textContent = text;
  if (at) {
    const link = document.createElement("a");
    link.href = at;
    link.textContent = "Look at it as it is now";
    problem.append(" ", link);
  }
  problem.hidden = false;
}

// Long texts, a portion at a time. They are inserted as text nodes: nothing is parsed as HTML.

function buildBlock([mono, runs]) {
  const block = document.createElement("div");
  block.className = mono ? "mono fetched" : "prose fetched";
  block.dir = mono ? "ltr" : "auto";
  for (const [kind, pieces] of runs) {
    const run = document.createElement("span");
    if (kind) run.className = `line ${kind}`;
    for (const [what, text, title] of pieces) {
      if (!what) { run.append(text); continue; }
      const piece = document.createElement(what === "mark" ? "mark" : "span");
      if (what === "unseen") { piece.className = "unseen"; piece.title = title; }
      piece.textContent = text;
      run.append(piece);
    }
    block.append(run);
  }
  return block;
}

async function fetchMore(gap) {
  const address = new URL(gap.querySelector("a").href);
  address.searchParams.set("start", gap.dataset.start);
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(String(answer.status));
  const portion = await answer.json();
  gap.before(...portion.blocks.map(buildBlock));
  gap.dataset.start = portion.end;
  const left = Number(gap.dataset.end) - portion.end;
  gap.querySelector(".left").textContent = `${left.toLocaleString("en")} characters left out`;
  if (left <= 0) gap.remove();
  return left > 0;
}

function fetchPortionsOnDemand(gap) {
  const all = gap.querySelector(".all");
  all.hidden = false;
  let fetching = false;
  const fetchParts = async (whole) => {
    if (fetching) return;
    fetching = true;
    try {
      while (await fetchMore(gap) && whole) await new Promise(requestAnimationFrame);
    } catch {
      say("The rest of the text can not be had: the server does not answer.");
    }
    fetching = false;
  };
  all.addEventListener("click", () => fetchParts(true));
  gap.querySelector("a").addEventListener("click", (event) => { event.preventDefault(); fetchParts(false); });
}

// The matches of a search

let mark = -1;

function toMark(by) {
  const found = [...document.querySelectorAll("mark")];
  if (!found.length) return false;
  found[mark]?.classList.remove("here");
  mark = (mark + by + found.length) % found.length;
  found[mark].classList.add("here");
  for (let at = found[mark].closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  found[mark].scrollIntoView({ block: "center" });
  return true;
}

// The theme

function switchTheme() {
  const root = document.documentElement;
  root.dataset.theme = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
  storageItem(local, "theme", root.dataset.theme);
  showTheme();
}

function showTheme() {
  find("#theme").textContent = `Theme: ${document.documentElement.dataset.theme}`;
  find("#theme").title = "Dark, light, or as the system has it (d)";
}

// Keys

function onButton(selector, act) {
  const button = find(selector);
  if (button) { button.hidden = false; button.addEventListener("click", act); }
}

// `keys` has what each key does; `repeated` are those that may be held down. Where a field is written in, only Escape is
// a key.
function takeKeys(keys, repeated = "") {
  const help = find("#help");
  const all = { ...keys, d: switchTheme, "?": () => help.showModal() };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (help.open) { if (event.key === "?") { event.preventDefault(); help.close(); } return; }
    const focused = document.activeElement;
    if (focused?.matches("input:not([type=checkbox]), textarea, select")) {
      if (event.key === "Escape") { event.preventDefault(); focused.blur(); }
      return;
    }
    if (event.key === "Enter") {
      if (!focused || focused === document.body || focused === find("#main")) toMark(event.shiftKey ? -1 : 1);
      return;
    }
    const act = all[event.key];
    if (!act) return;
    event.preventDefault();
    if (!event.repeat || repeated.includes(event.key)) act(); // a key held down is one press
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".gap").forEach(fetchPortionsOnDemand);
  onButton("#theme", switchTheme);
  onButton("#to-help", () => find("#help").showModal());
  showTheme();
});
