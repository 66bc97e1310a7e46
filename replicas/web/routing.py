"""The addresses of the websocket consumers."""

from django.urls import URLPattern

websocket_urlpatterns: list[URLPattern] = []
