// The pages of one version and of what lies between two: only which one is active is live.

import { pageData, show } from "./dom.js";
import { live } from "./live.js";
import { HeadState } from "./state.js";
import { setNow } from "./time.js";

const page = pageData();
setNow(page.snapshot.now);
const state = new HeadState(page);

function draw() {
  const active = String(state.service.version);
  for (const node of document.querySelectorAll("[data-active]")) show(node, node.dataset.active === active);
  for (const node of document.querySelectorAll("[data-inactive]")) show(node, node.dataset.inactive !== active && active !== "null");
  for (const node of document.querySelectorAll("[data-compare]")) node.setAttribute("href", node.dataset.compare + active);
}

live({ state, url: page.url, service: state.service.name, draw });
