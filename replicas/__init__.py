"""The Django app: services, versions and replicas, and everything that keeps them running."""

VERSION = "0.1.0"
