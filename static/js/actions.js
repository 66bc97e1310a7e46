// Forms that act: each asks first in a dialog, is posted once, and answers with a toast; the page stays where it is.

import { h } from "./dom.js";
import * as paths from "./paths.js";

const TOAST_STAYS = 6000;

/** Let the buttons with data-dialog open their dialog, and the forms with data-act post without leaving the page. */
export function prepareActions() {
  document.addEventListener("click", (click) => {
    const opener = click.target.closest("[data-dialog]");
    if (opener) openDialog(opener);
    const closer = click.target.closest("[data-close]");
    if (closer) closer.closest("dialog").close();
    if (click.target instanceof HTMLDialogElement) closeFromOutside(click);
  });
  document.addEventListener("submit", (submit) => {
    const form = submit.target;
    if (!form.matches("form[data-act]")) return;
    submit.preventDefault();
    post(form);
  });
  for (const toast of document.querySelectorAll("#toasts .toast")) keepToast(toast);
}

// data-action is where the dialog's form goes; data-fill-x is put where the dialog says data-slot="x".
function openDialog(opener) {
  const dialog = document.getElementById(opener.dataset.dialog);
  const form = dialog.querySelector("form");
  if (opener.dataset.action) form.action = opener.dataset.action;
  for (const slot of dialog.querySelectorAll("[data-slot]")) {
    const value = opener.dataset[`fill${slot.dataset.slot[0].toUpperCase()}${slot.dataset.slot.slice(1)}`];
    if (value !== undefined) slot.textContent = value;
  }
  for (const box of form.querySelectorAll("input[type=checkbox]")) box.checked = false;
  dialog.showModal();
  const field = form.querySelector("input[type=number]");
  if (field) field.select();
}

function closeFromOutside(click) {
  const box = click.target.getBoundingClientRect();
  const inside = click.clientX >= box.left && click.clientX <= box.right && click.clientY >= box.top && click.clientY <= box.bottom;
  if (!inside) click.target.close();
}

async function post(form) {
  if (form.dataset.busy) return;
  form.dataset.busy = "yes";
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  try {
    const data = new FormData(form);
    await tell(await send(form.action, data), data.get("csrfmiddlewaretoken"));
    form.dispatchEvent(new Event("acted", { bubbles: true }));
  } catch {
    toast("error", "The server did not answer. Nothing is known to have changed; try again when the page is live.");
  } finally {
    delete form.dataset.busy;
    button.disabled = false;
    form.closest("dialog")?.close();
  }
}

const send = (action, data) => fetch(action, { method: "POST", body: data, headers: { Accept: "application/json" } });

// What can be taken back has a button for it, which is a post like the one before.
async function tell(response, token) {
  if (response.headers.get("Content-Type")?.startsWith("application/json")) {
    const { level, message, undo } = await response.json();
    const node = toast(level, message, undo ? () => takeBack(undo, token) : null);
    if (response.status === 401) node.firstElementChild.append(" ", h("a", { href: paths.signIn() }, "Sign in"));
  } else if (response.status === 404) toast("error", "It is not there any more.");
  else toast("error", `The server answered with ${response.status}. See its log.`);
}

async function takeBack({ action, fields }, token) {
  const data = new FormData();
  data.set("csrfmiddlewaretoken", token);
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  try {
    await tell(await send(action, data), token);
  } catch {
    toast("error", "The server did not answer. Nothing is known to have been taken back.");
  }
}

/** Say something for a moment; errors stay until they are closed. `undo`, where it can be taken back, does that. */
export function toast(level, message, undo = null) {
  const node = h(
    "div",
    { class: "toast", data: { level }, role: level === "error" ? "alert" : null },
    h("span", {}, message),
    undo ? h("button", { type: "button", class: "link", onclick: () => (node.remove(), undo()) }, "Undo") : null,
    h("button", { type: "button", class: "quiet", "aria-label": "Close" }, "×"),
  );
  document.getElementById("toasts").append(node);
  keepToast(node);
  return node;
}

function keepToast(node) {
  node.querySelector("[aria-label=Close]").addEventListener("click", () => node.remove());
  if (node.dataset.level === "error") return;
  let timer = 0;
  const begin = () => (timer = setTimeout(() => node.remove(), TOAST_STAYS));
  for (const sign of ["pointerenter", "focusin"]) node.addEventListener(sign, () => clearTimeout(timer));
  for (const sign of ["pointerleave", "focusout"]) node.addEventListener(sign, begin);
  begin();
}
