// What every page has: theme, keys, help, local times, forms that act.

import { prepareActions } from "./actions.js";
import { prepareDrafts } from "./draft.js";
import { keepAges, localize } from "./time.js";

const THEMES = ["system", "light", "dark"];
const CHORD = 1200;

function prepareTheme() {
  const button = document.getElementById("theme");
  const chosen = () => document.documentElement.dataset.theme ?? "system";
  const label = () => {
    button.title = `Theme: ${chosen()}`;
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    localStorage.setItem("rollcall-theme", next);
    document.dispatchEvent(new Event("theme"));
    label();
  });
  label();
}

const typing = (target) => target.closest?.("input, textarea, select, [contenteditable], .ace_editor, dialog[open], [data-keys=own]");

function prepareKeys() {
  let chord = -Infinity; // when `g` was pressed: a busy page may handle the next key much later
  const go = { s: "services", o: "operations", n: "notices", y: "system" };
  const plain = {
    "/": () => document.querySelector("[data-search]")?.focus(),
    "?": () => document.getElementById("help").showModal(),
    j: () => step(1),
    k: () => step(-1),
    n: () => document.querySelector("[data-new]")?.click(),
    e: () => document.querySelector("[data-edit]")?.click(),
  };
  document.addEventListener("keydown", (key) => {
    if (key.ctrlKey || key.metaKey || key.altKey || typing(key.target)) return;
    const page = key.timeStamp - chord < CHORD ? document.querySelector(`nav [data-go="${go[key.key]}"]`) : null;
    chord = key.key === "g" ? key.timeStamp : -Infinity;
    const act = page ? () => page.click() : plain[key.key];
    if (!act) return;
    key.preventDefault();
    act();
  });
}

/** Move the focus to the next or previous row's link. */
function step(by) {
  const links = [...document.querySelectorAll("[data-row] a[data-main]")].filter((link) => link.offsetParent !== null);
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
  links[next].focus();
  links[next].scrollIntoView({ block: "nearest" });
}

// Browsers give the clipboard to pages over HTTPS or of this machine only.
function prepareCopies() {
  document.documentElement.classList.toggle("no-clipboard", !navigator.clipboard);
  document.addEventListener("click", async (click) => {
    const button = click.target.closest("[data-copy]");
    if (!button) return;
    const text = button.dataset.copy || document.getElementById(button.dataset.copyFrom).textContent;
    await navigator.clipboard.writeText(text);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = before), 1500);
  });
}

function prepareMenus() {
  document.addEventListener("click", (click) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(click.target)) menu.open = false;
  });
  document.addEventListener("keydown", (key) => {
    if (key.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  });
}

// Paper cannot be unfolded.
function preparePrint() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("main details:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
}

prepareTheme();
preparePrint();
prepareKeys();
prepareCopies();
prepareMenus();
prepareActions();
prepareDrafts();
localize(document);
keepAges();
