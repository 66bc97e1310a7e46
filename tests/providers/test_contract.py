"""The contract suite over the providers that ship."""

from typing import Any

import pytest

from replicas.providers.base import Launched
from tests.providers.cast import Cast
from tests.providers.contract import ProviderContract


class TestLocal(ProviderContract):
    @pytest.fixture
    def cast(self, local: Cast) -> Cast:
        return local

    def scripted(self, **happens: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if "exits" in happens:
            fields["run"] = f"exit {happens['exits']}"
        if happens.get("ignores_stop"):
            fields["run"] = "trap '' TERM; echo deaf; while :; do sleep 1; done"
        if happens.get("setup_fails"):
            fields["setup"] = f"echo '{happens['setup_fails']}'; exit 3"
        if happens.get("slow"):
            fields["setup"] = "sleep 0.3"
        return fields

    def settled(self, cast: Cast, launched: Launched) -> None:
        cast.printed(launched.handle, b"deaf")


class TestFake(ProviderContract):
    @pytest.fixture
    def cast(self, fake: Cast) -> Cast:
        return fake

    def scripted(self, **happens: Any) -> dict[str, Any]:
        script: dict[str, Any] = {}
        if "exits" in happens:
            script |= {"exit_after_seconds": 0, "exit_code": happens["exits"]}
        if happens.get("ignores_stop"):
            script["down_steps"] = 2
        if happens.get("setup_fails"):
            script["setup_fails"] = happens["setup_fails"]
        if happens.get("slow"):
            script["launch_seconds"] = 0.3
        return {"fake": script}
