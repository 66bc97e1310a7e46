// What is done to rows that are ticked: the bar that shows how many, and the dialog that names each before it is done.

import { bdi, fill, h, setText, show } from "./dom.js";
import { count } from "./words.js";

/**
 * Wire the bar and the dialog to a Selection. `deeds`: {verb: {word, what, look, again}}, `again` being what the button
 * of the dialog says (of n things) where that is not `word`; `chosen(verb)` gives [name, value] of each thing that the
 * verb is for, and the values are posted as `field`. Returns a function that draws the bar.
 */
export function bulk({ selection, deeds, noun, field, chosen }) {
  const bar = document.getElementById("bulk");
  const dialog = document.getElementById("dialog-bulk");
  const form = dialog.querySelector("form");

  function ask(verb) {
    const things = chosen(verb);
    const { word, what, look, again } = deeds[verb];
    form.elements.verb.value = verb;
    setText(dialog.querySelector("#bulk-title"), `${word} ${count(things.length, noun)}?`);
    setText(dialog.querySelector("#bulk-what"), what);
    const line = ([name, value]) => h("li", {}, bdi(name), h("input", { type: "hidden", name: field, value }));
    fill(dialog.querySelector("#bulk-names"), things.map(line));
    const submit = form.querySelector("[type=submit]");
    setText(submit, again ? again(things.length) : word);
    submit.className = look;
    const { target } = form.elements;
    if (target) prepare(target, verb === "scale");
    dialog.showModal();
    if (verb === "scale") target.focus();
  }

  function prepare(target, asked) {
    show(target.closest("label"), asked);
    target.disabled = !asked;
    target.required = asked;
    target.value = "";
  }

  document.getElementById("select-none").addEventListener("click", () => selection.choose([]));
  bar.addEventListener("click", (click) => {
    const verb = click.target.closest("[data-bulk]")?.dataset.bulk;
    if (verb) ask(verb);
  });
  dialog.addEventListener("acted", () => selection.choose([]));

  return (number) => {
    show(bar, number > 0);
    setText(document.getElementById("selected"), `${count(number, noun)} selected`);
  };
}
