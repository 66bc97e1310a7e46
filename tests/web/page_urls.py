"""Pages that hold nothing but what is under test, under the same Content-Security-Policy as all others."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from controlplane.urls import urlpatterns as product

HTML = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>test</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/css/app.css">
<link rel="stylesheet" href="/static/css/log.css"></head>
<body><div id="log"></div><script type="module" src="/test/{name}.js"></script></body></html>"""

LOG = """
import { LogView } from "/static/js/log.js";
const which = new URLSearchParams(location.search).get("replica");
window.view = new LogView(document.getElementById("log"), {
  url: `ws/log?replica=${which}&which=run`,
  log: `/logs/replica/${which}/run`,
  picked: (from, to) => (window.picked = [from, to]), link: (from, to) => `${location.href}#run@${from}-${to}`,
});
"""

FEED = """
import { Feed } from "/static/js/feed.js";
const query = new URLSearchParams(location.search);
window.ids = []; window.batches = []; window.states = []; window.resets = [];
const feed = (window.feed = new Feed({ after: Number(query.get("after")), service: query.get("service") }));
feed.addEventListener("event", ({ detail }) => ids.push(detail.id));
feed.addEventListener("batch", ({ detail }) => batches.push(detail.map((event) => event.id)));
feed.addEventListener("state", ({ detail }) => states.push(detail.state));
feed.addEventListener("reset", ({ detail }) => resets.push(detail.reason));
feed.start();
"""


def page(request: HttpRequest, name: str) -> HttpResponse:
    """A page with one script."""
    return HttpResponse(HTML.format(name=name))


def script(request: HttpRequest, text: str) -> HttpResponse:
    """A script."""
    return HttpResponse(text, content_type="text/javascript")


urlpatterns = [
    path("test/log", page, {"name": "log"}),
    path("test/log.js", script, {"text": LOG}),
    path("test/feed", page, {"name": "feed"}),
    path("test/feed.js", script, {"text": FEED}),
    *product,
]
