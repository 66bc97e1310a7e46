"""The addresses of the websockets."""

from django.urls import URLPattern, path, re_path

from replicas.web import consumers, logsocket

websocket_urlpatterns: list[URLPattern] = [
    path("ws/feed", consumers.FeedSocket.serve),  # type: ignore[arg-type]
    path("ws/log", logsocket.LogSocket.serve),  # type: ignore[arg-type]
    re_path(r"", consumers.unknown),  # type: ignore[arg-type]
]
