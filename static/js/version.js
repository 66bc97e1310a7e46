// The pages of one version and of what lies between two: only which one is active is live.

import { h, pageData, show } from "./dom.js";
import { live } from "./live.js";
import { HeadState } from "./state.js";
import { setNow } from "./time.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new HeadState(page);

const rollback = document.getElementById("rollback");

function draw() {
  const active = state.service.desired === "UP" ? String(state.service.version) : "null";
  const expected = document.querySelector("#dialog-rollback [name=expected]");
  if (expected && !expected.closest("dialog").open) expected.value = active;
  for (const node of document.querySelectorAll("[data-active]")) show(node, node.dataset.active === active);
  for (const node of document.querySelectorAll("[data-inactive]")) show(node, node.dataset.inactive !== active && active !== "null");
  for (const node of document.querySelectorAll("[data-compare]")) node.setAttribute("href", node.dataset.compare + active);
}

// What going back would do, as it is now and not as it was when the page was opened.
async function tellPlan() {
  const list = document.getElementById("plan");
  list.replaceChildren();
  refuse("");
  const response = await fetch(rollback.dataset.plan, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!response?.ok) return;
  const told = await response.json();
  list.replaceChildren(...told.plan.map((line) => h("li", {}, line)));
  refuse(told.refused);
}

// Where there is no way back the question says so, instead of taking an answer that is refused.
function refuse(why) {
  const told = document.getElementById("refused");
  told.textContent = why;
  show(told, why !== "");
  document.querySelector("#dialog-rollback [type=submit]").disabled = why !== "";
}

rollback?.addEventListener("click", tellPlan);
live({ state, url: page.url, service: state.service.name, draw });
if (location.hash === "#rollback" && rollback && !rollback.hidden) rollback.click();
