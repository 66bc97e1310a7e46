// The YAML editor: Ace over the plain text field, faults at their lines and the plan while one types.

import { Completer } from "./completer.js";
import { h, pageData, setText, show } from "./dom.js";
import { Draft } from "./draft.js";
import { showConnection } from "./live.js";
import { Feed } from "./feed.js";
import * as paths from "./paths.js";
import { count } from "./words.js";

const PAUSE = 400;
const page = pageData();
const form = document.getElementById("editor-form");
const field = form.elements.text;
const at = (id) => document.getElementById(id);
let asked = 0;

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => {
  const chosen = document.documentElement.dataset.theme;
  return `ace/theme/${(chosen ? chosen === "dark" : dark.matches) ? "github_dark" : "github_light_default"}`;
};

function prepareAce() {
  const { ace } = globalThis;
  if (!ace) return null;
  ace.config.set("useStrictCSP", true);
  ace.config.set("loadWorkerFromBlob", false);
  const place = h("div", { class: "ace-place", data: { keys: "own" } });
  field.after(place);
  field.hidden = true;
  show(at("editor-keys"), true);
  field.required = false; // a browser could not show its complaint at a hidden field; the server has the same
  const editor = ace.edit(place, {
    mode: "ace/mode/yaml",
    theme: theme(),
    useWorker: false,
    useSoftTabs: true,
    tabSize: 2,
    showPrintMargin: false,
    minLines: 18,
    maxLines: 40,
    value: field.value,
  });
  editor.commands.removeCommands(["showSettingsMenu"]);
  editor.textInput.getElement().setAttribute("aria-label", "YAML of the service");
  // Tab indents while one types; Escape lets the keyboard leave the editor, unless it closes the completions.
  editor.commands.addCommand({ name: "leave", bindKey: "Esc", exec: () => form.querySelector("[type=submit]").focus() });
  editor.session.on("change", () => {
    field.value = editor.getValue();
    changed();
  });
  new Completer(editor, page.schema);
  const retheme = () => editor.setTheme(theme());
  dark.addEventListener("change", retheme);
  document.addEventListener("theme", retheme);
  return editor;
}

let timer = 0;
function changed() {
  draft.keep(fields());
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
}

async function check() {
  const number = (asked += 1);
  const data = new FormData(form);
  if (page.service) data.set("service", page.service);
  const request = { method: "POST", body: data, headers: { Accept: "application/json" } };
  const response = await fetch(page.check, request).catch(() => null);
  const answer = await response?.json().catch(() => null);
  if (number !== asked) return;
  if (response?.ok && answer) tell(answer);
  else unchecked(response, answer);
}

// Without a verdict nothing that was said of an earlier text stays.
function unchecked(response, answer) {
  const why = response ? (answer?.message ?? `the server answered with ${response.status}. See its log.`) : "the server did not answer.";
  draw({ errors: [], changes: [], plan: [], warnings: [] }, "warn", `The text could not be checked: ${why}`);
  if (response?.status === 401) at("verdict").append(" ", h("a", { href: paths.signIn() }, "Sign in"));
}

function tell(verdict) {
  const faults = verdict.errors.length;
  draw(verdict, faults ? "bad" : "ok", faults ? count(faults, "fault") : sentenceOf(verdict));
}

function draw(verdict, tone, text) {
  at("verdict").dataset.tone = tone;
  setText(at("verdict"), text);
  at("faults").replaceChildren(...verdict.errors.map(fault));
  at("changes").replaceChildren(...verdict.changes.map((line) => h("li", {}, line)));
  at("plan").replaceChildren(...verdict.plan.map((line) => h("li", {}, line)));
  at("warnings").replaceChildren(...verdict.warnings.map((line) => h("li", {}, line)));
  for (const id of ["faults", "changes", "plan", "warnings"]) show(at(id), at(id).children.length > 0);
  show(at("plan-title"), verdict.plan.length > 0);
  if (editor) mark(verdict.errors.filter((each) => each.line));
}

let marks = [];
function mark(faults) {
  const { session } = editor;
  for (const each of marks) session.removeMarker(each);
  const { Range } = globalThis.ace.require("ace/range");
  marks = faults.map(({ line }) => session.addMarker(new Range(line - 1, 0, line - 1, 1), "fault-line", "fullLine"));
  session.setAnnotations(faults.map(({ line, column, message }) => ({ row: line - 1, column: column - 1, text: message, type: "error" })));
}

function sentenceOf(verdict) {
  const sentences = {
    create: `This creates the service ${verdict.name}.`,
    update: `This changes ${verdict.name}: a new version follows version ${verdict.active}.`,
    scale: `This scales ${verdict.name}, which stays at version ${verdict.active}.`,
    revive: `This brings ${verdict.name} up again.`,
    unchanged: `This changes nothing in ${verdict.name}.`,
  };
  return sentences[verdict.kind];
}

function fault(each) {
  const place = each.line ? `Line ${each.line}` : null;
  const go = () => {
    if (editor) {
      editor.gotoLine(each.line, each.column - 1, true);
      editor.focus();
    }
  };
  return h(
    "li",
    {},
    place ? h("button", { type: "button", class: "link", onclick: go }, place) : null,
    h("span", {}, each.path ? h("code", {}, each.path) : null, each.path ? ": " : null, each.message),
  );
}

// Somebody else's apply is told at once, before one has finished typing.
function watchOthers(feed) {
  feed.addEventListener("event", ({ detail: event }) => {
    if (!page.service || event.kind !== "version") return;
    setText(at("meanwhile"), `${event.actor} made version ${event.data.number} meanwhile. What you apply will ask before it replaces that.`);
    show(at("meanwhile"), true);
  });
}

// What was written here and never arrived is offered again, with the version that it was made from.
function offer(found) {
  const node = at("draft");
  setText(node.firstElementChild, `Your text of ${Draft.timeOf(found)} was not sent.`);
  const close = () => {
    show(node, false);
    draft.keep(fields());
  };
  node.querySelector("[data-take]").addEventListener("click", () => {
    for (const [name, value] of Object.entries(found.fields)) if (form.elements[name]) form.elements[name].value = value;
    if (editor) editor.setValue(found.fields.text, -1);
    else changed();
    close();
  });
  node.querySelector("[data-drop]").addEventListener("click", close);
  show(node, true);
}

const FIELDS = ["text", "name", "message", "of", "expected"].filter((name) => form.elements[name]);
const fields = () => Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].value]));
const draft = new Draft(page.user, fields(), Boolean(page.verdict));
const editor = prepareAce();
field.addEventListener("input", changed);
form.elements.name?.addEventListener("input", changed);
form.elements.message.addEventListener("input", () => draft.keep(fields()));
if (draft.found && draft.found.fields.text !== field.value) offer(draft.found);
form.addEventListener("submit", () => {
  for (const button of form.querySelectorAll("[type=submit]")) setTimeout(() => (button.disabled = true));
});
addEventListener("pageshow", () => {
  for (const button of form.querySelectorAll("[type=submit]")) button.disabled = false;
});
if (page.verdict) tell(page.verdict);
else check();
const feed = new Feed({ after: page.cursor, service: page.service });
showConnection(feed);
watchOthers(feed);
feed.start();
