"""The control plane as processes: supervisor, children, set-up."""
