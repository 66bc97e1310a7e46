"""Somebody with a browser: signs in, applies, scales, terminates, through the forms of the dashboard."""

import time
from typing import Any

import requests

from tests.support.controlplane import PASSWORD, ControlPlane
from tests.support.patience import Patience

PATIENCE_SECONDS = 30.0


class Person:
    """Tries again while the web process is away, as a person does; every act may be repeated without harm."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.session = requests.Session()
        self.session.headers["Accept"] = "application/json"

    def sign_in(self) -> "Person":
        """With the first user's password."""
        self.session.get(f"{self.plane.url}/login", timeout=20).raise_for_status()
        answer = self._post("/login", username="admin", password=PASSWORD)
        assert answer.status_code in (200, 302), answer.text
        assert any("session" in name for name in dict(self.session.cookies))
        return self

    @property
    def cookie(self) -> str:
        """The Cookie header of the session."""
        return "; ".join(f"{name}={value}" for name, value in self.session.cookies.items())

    def post(self, path: str, **fields: Any) -> requests.Response:
        """POST a form until somebody answers."""
        patience = Patience(PATIENCE_SECONDS)
        while True:
            try:
                answer = self._post(path, **fields)
                if answer.status_code < 500:
                    return answer
            except requests.RequestException:
                if patience.over():
                    raise
            else:
                assert not patience.over(), f"{path}: {answer.status_code} {answer.text[:500]}"
            time.sleep(0.1)

    def apply(self, text: str, name: str, known: bool = False) -> None:
        """Make a service, or give one that is known another version."""
        answer = self.post(f"/services/{name}/edit" if known else "/new", text=text)
        assert answer.status_code == 302, f"{answer.status_code}: {answer.text[:2000]}"

    def scale(self, name: str, target: int) -> None:
        """Want so many replicas."""
        self._accepted(self.post(f"/services/{name}/scale", target=target))

    def restart(self, name: str, version: int) -> bool:
        """Replace every replica of the version; False when it is not the active one any more."""
        answer = self.post(f"/services/{name}/restart", expected=version)
        assert answer.status_code in (200, 409), answer.text
        return answer.status_code == 200

    def terminate(self, name: str, number: int) -> bool:
        """Want the replica gone; False when it has ended already."""
        answer = self.post(f"/services/{name}/replicas/{number}/terminate")
        assert answer.status_code in (200, 409), answer.text
        return answer.status_code == 200

    def cancel(self, operation: int) -> bool:
        """Stop the launch; False when it has ended already."""
        answer = self.post(f"/operations/{operation}/cancel")
        assert answer.status_code in (200, 409), answer.text
        return answer.status_code == 200

    def down(self, name: str) -> None:
        """Want nothing of the service running."""
        self._accepted(self.post(f"/services/{name}/down"))

    def _accepted(self, answer: requests.Response) -> None:
        assert answer.status_code == 200, f"{answer.status_code}: {answer.text[:500]}"

    def _post(self, path: str, **fields: Any) -> requests.Response:
        token = next((value for name, value in self.session.cookies.items() if "csrf" in name), "")
        return self.session.post(
            self.plane.url + path, data=fields, headers={"X-CSRFToken": token}, allow_redirects=False, timeout=20
        )
