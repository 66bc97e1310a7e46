// The list of what can be written at the cursor: Ctrl-Space opens it, arrows choose, Enter takes, Escape closes.

import { h, setAttribute, setText, show } from "./dom.js";
import { completionsAt } from "./speccompletion.js";
import { count } from "./words.js";

const KEYS = { up: -1, down: 1, pageup: -8, pagedown: 8 };

/** For an Ace editor; `url` has the schema, which is fetched when it is asked for first. */
export class Completer {
  #editor;
  #url;
  #schema = null;
  #list = h("ul", { class: "completions", id: "completions", role: "listbox", "aria-label": "Completions", hidden: true });
  #said = h("p", { class: "hush", role: "status" });
  #items = [];
  #from = 0;
  #at = 0;
  #taking = false;

  constructor(editor, url) {
    this.#editor = editor;
    this.#url = url;
    editor.container.parentElement.after(this.#list, this.#said); // which cuts off what leaves it
    editor.textInput.getElement().setAttribute("aria-autocomplete", "list");
    editor.commands.addCommand({ name: "complete", bindKey: "Ctrl-Space", exec: () => this.open() });
    editor.keyBinding.addKeyboardHandler({ handleKeyboard: (_data, _hash, key) => this.#key(key) });
    editor.on("blur", () => this.close());
    editor.session.on("changeScrollTop", () => this.close());
    editor.on("changeSelection", () => !this.#taking && !this.#list.hidden && queueMicrotask(() => this.#look()));
    this.#list.addEventListener("mousedown", (press) => {
      press.preventDefault(); // the editor keeps the focus
      const option = press.target.closest("[role=option]");
      if (option) this.#take(Number(option.dataset.place));
    });
  }

  async open() {
    if (!this.#schema) {
      try {
        const answer = await fetch(this.#url, { headers: { Accept: "application/json" } });
        if (!answer.ok) throw new Error(answer.statusText);
        this.#schema = await answer.json();
      } catch {
        setText(this.#said, "What can stand here could not be fetched: the server did not answer.");
        return;
      }
    }
    this.#look(true);
  }

  close() {
    show(this.#list, false);
    const input = this.#editor.textInput.getElement();
    for (const name of ["aria-activedescendant", "aria-controls"]) setAttribute(input, name, null);
  }

  #look(asked = false) {
    const { row, column } = this.#editor.getCursorPosition();
    const found = completionsAt(this.#schema, this.#editor.session.getDocument().getAllLines(), row, column);
    this.#items = found?.items ?? [];
    this.#from = found?.from ?? 0;
    this.#at = 0;
    if (!this.#items.length) {
      this.close();
      if (asked) setText(this.#said, "Nothing to complete here.");
      return;
    }
    this.#draw();
    this.#move(row);
  }

  #draw() {
    const options = this.#items.map((item, place) =>
      h(
        "li",
        { role: "option", id: `completion-${place}`, "aria-selected": String(place === this.#at), data: { place } },
        h("b", {}, item.label),
        item.detail ? h("span", {}, item.detail) : null,
      ),
    );
    this.#list.replaceChildren(...options);
    show(this.#list, true);
    const input = this.#editor.textInput.getElement();
    setAttribute(input, "aria-controls", "completions");
    this.#tell();
  }

  #tell() {
    const item = this.#items[this.#at];
    const option = this.#list.children[this.#at];
    setAttribute(this.#editor.textInput.getElement(), "aria-activedescendant", option.id);
    setText(this.#said, `${item.label}${item.detail ? `: ${item.detail}` : ""} (${this.#at + 1} of ${count(this.#items.length, "completion")})`);
    option.scrollIntoView({ block: "nearest" });
  }

  // Below the line, at the place where what is typed begins; above it where there is no room below.
  #move(row) {
    const { renderer } = this.#editor;
    const place = renderer.textToScreenCoordinates(row, this.#from);
    const outer = this.#list.offsetParent.getBoundingClientRect();
    const width = this.#list.offsetWidth;
    const left = Math.max(0, Math.min(place.pageX - scrollX - outer.left, outer.width - width - 4));
    const top = place.pageY - scrollY + renderer.lineHeight;
    const above = top + this.#list.offsetHeight > innerHeight && top > innerHeight / 2;
    this.#list.style.left = `${left}px`;
    this.#list.style.top = `${top - outer.top - (above ? renderer.lineHeight + this.#list.offsetHeight : 0)}px`;
  }

  // Keys that are for the list while it is open; all others are the editor's.
  #key(key) {
    if (this.#list.hidden) return null;
    if (key in KEYS) return this.#command(() => this.#step(KEYS[key]));
    if (key === "return" || key === "tab") return this.#command(() => this.#take(this.#at));
    if (key === "esc") return this.#command(() => this.close());
    return null;
  }

  #command(exec) {
    return { command: { exec }, passEvent: false };
  }

  #step(by) {
    const size = this.#items.length;
    const next = this.#at + by;
    this.#list.children[this.#at].setAttribute("aria-selected", "false");
    this.#at = Math.abs(by) === 1 ? (next + size) % size : Math.max(0, Math.min(size - 1, next));
    this.#list.children[this.#at].setAttribute("aria-selected", "true");
    this.#tell();
  }

  #take(place) {
    const { row, column } = this.#editor.getCursorPosition();
    const { insert } = this.#items[place];
    this.close();
    setText(this.#said, "");
    this.#taking = true;
    const range = { start: { row, column: this.#from }, end: { row, column } };
    this.#editor.session.replace(range, insert);
    this.#taking = false;
    this.#editor.focus();
  }
}
