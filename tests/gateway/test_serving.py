"""Rows become entries and places in traffic."""

import os
import subprocess
from pathlib import Path

import pytest

from replicas.actions import endpoints, services
from replicas.controller import serving
from replicas.core.spec import SpecErrors, parse
from replicas.gateway.places import Places
from replicas.gateway.values import member
from replicas.models import Replica
from tests import cast
from tests.controller.stage import Stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def places(home: Path) -> Places:
    made = Places(home / "gateway", home / "run", home / "logs" / "access")
    made.prepare()
    return made


def test_a_renewed_certificate_is_another_entry(places: Places, home: Path) -> None:
    key, certificate = home / "web.key", home / "web.crt"
    first, second = pair(home / "1"), pair(home / "2")
    certificate.write_text(first[0])
    key.write_text(first[1])
    services.apply(
        cast.draft(
            "web", 1, service={"endpoint_port": 18000, "tls": {"keyfile": str(key), "certfile": str(certificate)}}
        ),
        actor="ann",
    )
    (row,) = serving.rows()
    endpoints.give(row.id, 18000, actor="gateway")
    (row,) = serving.rows()
    before = serving.entry_of(row, places)
    assert before is not None
    assert Path(before.certificate).read_text() == "\n".join(first)
    assert Path(before.certificate).stat().st_mode & 0o077 == 0
    for half in (second[0], "", second[0][:99]):  # a renewal has written that much
        certificate.write_text(half)
        assert serving.entry_of(row, places) == before
    certificate.write_text(second[0])
    key.write_text(second[1])
    after = serving.entry_of(row, places)
    assert after is not None
    assert after != before
    assert Path(after.certificate).read_text() == "\n".join(second)
    certificate.write_text(first[0])
    key.write_text(first[1])
    for each in (key, certificate):
        os.utime(each, (1, 1))  # older files, as `cp -p` or another version that names them gives
    restored = serving.entry_of(row, places)
    assert restored is not None
    assert restored != after
    assert Path(restored.certificate).read_text() == "\n".join(first)
    assert serving.entry_of(row, places) == restored
    certificate.write_text(second[0])
    os.utime(certificate, (1, 1))  # nothing is going on there: HAProxy's check is to name what is wrong
    wrong = serving.entry_of(row, places)
    assert wrong is not None
    assert Path(wrong.certificate).read_text() == second[0] + "\n" + first[1]


@pytest.mark.parametrize("kind", ["device", "pipe", "directory"])
def test_a_certificate_that_is_no_file_is_named_and_never_read(places: Places, home: Path, kind: str) -> None:
    odd, key = home / "odd.crt", home / "web.key"
    if kind == "device":
        odd.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.mkdir()
    key.write_text("a key")
    tls = {"keyfile": str(key), "certfile": str(odd)}
    services.apply(cast.draft("web", 1, service={"endpoint_port": 18000, "tls": tls}), actor="ann")
    (row,) = serving.rows()
    endpoints.give(row.id, 18000, actor="gateway")
    (row,) = serving.rows()
    made = serving.entry_of(row, places)
    assert made is not None
    assert made.certificate == f"{odd} (which is no file)"
    assert not (places.directory / f"{row.id}.pem").exists()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://localhost:8001", "127.0.0.1:8001"),
        ("https://h", "h:443"),
        ("http://h:99999", None),
        ("http://[h", None),
        ("http://:80", None),
        ("tcp://h:80", None),
        ("", None),
    ],
)
def test_an_address_is_a_place_in_traffic_or_none(url: str, place: str | None) -> None:
    found = member(1, url)
    assert (found and found.address) == place


def pair(path: Path) -> tuple[str, str]:
    """A new certificate and its key."""
    certificate, key = path.with_suffix(".crt"), path.with_suffix(".key")
    subject = ["-subj", "/CN=localhost", "-days", "1", "-nodes"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    return certificate.read_text(), key.read_text()


def test_pools_have_no_address(home: Path) -> None:
    services.apply(cast.draft("web", 1, service={"workers": 2}), actor="ann")
    assert [row.addressed for row in serving.rows()] == [False]


def test_a_weight_is_that_of_the_accelerator(home: Path) -> None:
    rates = {"A100": 10, "L4": 2.5}
    service = {
        "load_balancing_policy": "instance_aware_least_load",
        "replica_policy": {"min_replicas": 1, "target_qps_per_replica": rates},
    }
    version = services.apply(cast.draft("web", 1, service=service), actor="ann").version
    weights = [serving.weight_of(name, version.uid) for name in ("A100:1", "L4:1", "T4:1", "")]
    assert weights == [256, 64, 64, 64]


def test_only_ready_replicas_have_traffic(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    try:
        service = cast.service(target=2)
        stage.settle(service)
    finally:
        stage.close()
    Replica.objects.update(url="http://127.0.0.1:20001")
    assert [seat.listed for seat in serving.seats([service.pk])] == [True, True]
    Replica.objects.filter(number=1).update(state="NOT_READY")
    assert {seat.member.number: seat.listed for seat in serving.seats([service.pk])} == {1: False, 2: True}


def test_a_replica_that_does_not_speak_http_has_no_traffic(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address means nothing to HAProxy, which would refuse the configuration of every service for it."""
    stage = Stage(monkeypatch)
    try:
        service = cast.service(target=2)
        stage.settle(service)
    finally:
        stage.close()
    assert {url.partition(":")[0] for url in Replica.objects.values_list("url", flat=True)} == {"fake"}
    assert [(seat.member, seat.listed) for seat in serving.seats([service.pk])] == [(None, False)] * 2


@pytest.mark.parametrize(
    ("balancer", "said"),
    [
        ("hash_on: path", "needs load_balancing_policy: consistent_hash"),
        ("bearer_token: in-the-clear", "must be the name of a secret"),
        ("bearer_token: $OTHER", "must be the name of a secret"),
        ("max_concurrency: 0", "must be 1 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(balancer: str, said: str) -> None:
    text = f"name: web\nrun: serve\nsecrets: {{TOKEN: not-a-real-one}}\nservice:\n  load_balancer: {{{balancer}}}\n"
    with pytest.raises(SpecErrors, match=said):
        parse(text)


def test_a_header_to_hash_on_is_a_plain_name() -> None:
    text = (
        "name: web\nrun: serve\nservice:\n  load_balancing_policy: consistent_hash\n  load_balancer: {hash_on: '%s'}\n"
    )
    assert parse(text % "header:X-Session")
    with pytest.raises(SpecErrors, match="header:NAME"):
        parse(text % "header:a) -m found } or { always_true")
