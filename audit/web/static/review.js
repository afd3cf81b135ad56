// The review's keys, and saving: the page is left only when the server says that a verdict is saved. It goes on from
// pages.js. Without this file everything but the keys works.
"use strict";

const QUIET = 350; // milliseconds in which a new step takes no verdict: the key was meant for the step before

const session = () => window.sessionStorage;

document.addEventListener("DOMContentLoaded", () => {
  const main = find("#main"), form = find("#verdict"), notes = find("#notes"), search = find("#search");
  const undo = find("#undo"), problem = find("#problem");
  let busy = false, ready = false;

  setTimeout(() => { ready = true; document.body.dataset.ready = "yes"; }, QUIET);
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

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

  // Moving through the page

  function toLast() {
    const last = find("#last");
    if (!last) return;
    last.open = true;
    last.scrollIntoView({ block: "start" });
    last.querySelector("summary").focus({ preventScroll: true });
  }

  function unfold() {
    const turns = [...document.querySelectorAll(".turn")];
    const folded = turns.some((turn) => !turn.open);
    for (const [place, turn] of turns.entries()) turn.open = folded || place === turns.length - 1;
    find("#unfold").textContent = folded ? "Fold all" : "Unfold all";
  }

  onButton("#unfold", unfold);
  find("#to-last")?.addEventListener("click", (event) => { event.preventDefault(); toLast(); });
  if (find("#no-search")) toMark(1);

  const follow = (selector) => { if (!busy) find(selector)?.click(); };
  function judge(place) {
    const button = form?.querySelectorAll(".verdicts button")[place];
    if (!button) return;
    if (!ready) say("That was quick: this step had only just appeared. Press the key again.");
    else form.requestSubmit(button);
  }

  takeKeys({
    1: () => judge(0), 2: () => judge(1), 3: () => judge(2),
    n: () => notes?.focus(), "/": () => { search?.focus(); search?.select(); },
    j: () => follow("#next"), ArrowRight: () => follow("#next"), k: () => follow("#back"), ArrowLeft: () => follow("#back"),
    u: () => { if (undo) undo.requestSubmit(); else say("There is nothing to undo."); },
    g: toLast, e: () => find("#unfold") && unfold(), o: () => follow("#to-queue"),
    Escape: () => follow("#no-search"),
  }, "g");
});
