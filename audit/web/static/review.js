// The keys, and saving: the page is left only when the server says that a verdict is saved. Without this file everything
// but the keys works.
"use strict";

const QUIET = 350; // milliseconds in which a new step takes no verdict: the key was meant for the step before
const THEMES = ["auto", "light", "dark"];

function storageItem(store, key, value) {
  try { // the browser's storage may be switched off
    if (value === undefined) return store().getItem(key);
    store().setItem(key, value);
  } catch { /* then nothing is remembered */ }
  return null;
}

const local = () => window.localStorage;
const session = () => window.sessionStorage;
document.documentElement.dataset.theme = storageItem(local, "theme") || "auto";

document.addEventListener("DOMContentLoaded", () => {
  const find = (selector) => document.querySelector(selector);
  const main = find("#main"), form = find("#verdict"), notes = find("#notes"), search = find("#search");
  const help = find("#help"), undo = find("#undo"), problem = find("#problem");
  const marks = () => [...document.querySelectorAll("mark")];
  let busy = false, ready = false, mark = -1;

  setTimeout(() => { ready = true; document.body.dataset.ready = "yes"; }, QUIET);
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  function say(text, at) {
    problem.textContent = text;
    if (at) {
      const link = document.createElement("a");
      link.href = at;
      link.textContent = "Look at it as it is now";
      problem.append(" ", link);
    }
    problem.hidden = false;
  }

  // Saving: the next page is opened only when the server has said that the verdict is on disk.

  async function send(target, button) {
    if (busy) return;
    busy = true;
    document.body.classList.add("busy");
    problem.hidden = true;
    const fields = new URLSearchParams(new FormData(target));
    if (button && button.name) fields.set(button.name, button.value);
    try {
      const answer = await fetch(target.action, { method: "POST", body: fields, headers: { Accept: "application/json" } });
      const said = (answer.headers.get("content-type") || "").includes("json") ? await answer.json() : {};
      if (answer.ok && said.at) {
        if (target === form) keepDraft(true);
        location.assign(said.at);
        return; // busy until the next page is there
      }
      say(said.problem || `Not saved: the server answered ${answer.status}. Was it started anew? Open its new link.`, said.at);
    } catch {
      say("Not saved: the server does not answer. Start it again; your notes are kept in this window.");
    }
    busy = false;
    document.body.classList.remove("busy");
  }

  for (const target of [form, undo]) {
    if (target) {
      target.addEventListener("submit", (event) => {
        event.preventDefault();
        send(target, event.submitter);
      });
    }
  }

  // Notes that are not saved yet are remembered when the page is left, and so are those of a verdict that is taken back.
  // They are shown only where the saved notes are still the ones that they were written over: others are newer.

  const draftKey = () => `notes ${main.dataset.step} ${form.elements.prefix.value}`;
  function keepDraft(sent) {
    storageItem(session, draftKey(), JSON.stringify({ text: notes.value, over: sent ? null : notes.defaultValue }));
  }

  function draft() {
    try {
      return JSON.parse(storageItem(session, draftKey()));
    } catch {
      return null;
    }
  }

  if (notes) {
    const written = draft();
    if (written && (!main.dataset.answered || written.over === notes.defaultValue)) notes.value = written.text;
    notes.addEventListener("input", () => keepDraft(false));
    notes.addEventListener("keydown", (event) => {
      const keep = find(".keep");
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && keep) form.requestSubmit(keep);
    });
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

  for (const gap of document.querySelectorAll(".gap")) {
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

  // Moving through the page

  function toLast() {
    const last = find("#last");
    if (!last) return;
    last.open = true;
    last.scrollIntoView({ block: "start" });
    last.querySelector("summary").focus({ preventScroll: true });
  }

  function toMark(by) {
    const found = marks();
    if (!found.length) return false;
    found[mark]?.classList.remove("here");
    mark = (mark + by + found.length) % found.length;
    found[mark].classList.add("here");
    found[mark].closest("details").open = true;
    found[mark].scrollIntoView({ block: "center" });
    return true;
  }

  function unfold() {
    const turns = [...document.querySelectorAll(".turn")];
    const folded = turns.some((turn) => !turn.open);
    for (const [place, turn] of turns.entries()) turn.open = folded || place === turns.length - 1;
    find("#unfold").textContent = folded ? "Fold all" : "Unfold all";
  }

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

  for (const [selector, act] of [["#theme", switchTheme], ["#to-help", () => help.showModal()], ["#unfold", unfold]]) {
    const button = find(selector);
    if (button) { button.hidden = false; button.addEventListener("click", act); }
  }
  find("#to-last")?.addEventListener("click", (event) => { event.preventDefault(); toLast(); });
  showTheme();
  if (find("#no-search")) toMark(1);

  const follow = (selector) => { if (!busy) find(selector)?.click(); };
  function judge(place) {
    const button = form?.querySelectorAll(".verdicts button")[place];
    if (!button) return;
    if (!ready) say("That was quick: this step had only just appeared. Press the key again.");
    else form.requestSubmit(button);
  }

  const keys = {
    1: () => judge(0), 2: () => judge(1), 3: () => judge(2),
    n: () => notes?.focus(), "/": () => { search?.focus(); search?.select(); },
    j: () => follow("#next"), ArrowRight: () => follow("#next"), k: () => follow("#back"), ArrowLeft: () => follow("#back"),
    u: () => { if (undo) undo.requestSubmit(); else say("There is nothing to undo."); },
    g: toLast, e: () => find("#unfold") && unfold(), o: () => follow("#to-queue"), d: switchTheme, "?": () => help.showModal(),
    Escape: () => follow("#no-search"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (help.open) { if (event.key === "?") { event.preventDefault(); help.close(); } return; }
    const focused = document.activeElement;
    if (focused === notes || focused === search) {
      if (event.key === "Escape") { event.preventDefault(); focused.blur(); }
      return;
    }
    if (event.key === "Enter") {
      if (!focused || focused === document.body || focused === main) toMark(event.shiftKey ? -1 : 1);
      return;
    }
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    if (!event.repeat || event.key === "g") act(); // a key held down is one press
  });
});
