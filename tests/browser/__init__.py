"""Chromium over a real web process, and over a whole control plane."""
