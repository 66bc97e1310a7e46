"""`logs`: byte for byte, from wherever it is asked for, to the very end."""

from collections.abc import Callable
from pathlib import Path

import pytest

from replicas.actions import operations, services
from replicas.config import Config
from replicas.core.values import OperationStatus
from replicas.management.commands.logs import _start_of_tail
from replicas.models import Lease, Replica
from tests.commands import acts
from tests.commands.conftest import Run

Meanwhile = Callable[..., None]


@pytest.fixture
def launched(run: Run, yaml: Path, config: Config, controller: Lease) -> tuple[Replica, Path]:
    """A replica whose run log is in a file, and the file."""
    run("apply", yaml)
    replica = acts.pending(acts.service())
    claimed = operations.claim(acts.operation_of(replica).pk, acts.WORKER)
    assert claimed is not None
    log = config.home / "replicas" / replica.uid / "run.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(1, 6)))
    facts = {"handle": {}, "url": "http://127.0.0.1:1", "pid": 1, "log": str(log)}
    operations.settle(
        claimed, OperationStatus.SUCCEEDED, "launched", reason="running", usage=operations.Usage(), **facts
    )
    return replica, log


def test_all_of_it(run: Run, launched: tuple[Replica, Path]) -> None:
    result = run("logs", "web", 1)
    assert (result.code, result.err) == (0, "")
    assert result.out == "line 1\nline 2\nline 3\nline 4\nline 5\n"


@pytest.mark.parametrize(("lines", "shown"), [(0, ""), (1, "line 5\n"), (2, "line 4\nline 5\n")])
def test_the_last_lines(run: Run, launched: tuple[Replica, Path], lines: int, shown: str) -> None:
    assert run("logs", "web", 1, "--tail", lines).out == shown


def test_more_lines_than_there_are(run: Run, launched: tuple[Replica, Path]) -> None:
    assert run("logs", "web", 1, "--tail", 1000).out == run("logs", "web", 1).out


def test_an_unfinished_last_line_is_a_line(run: Run, launched: tuple[Replica, Path]) -> None:
    with launched[1].open("ab") as file:
        file.write(b"no end")
    assert run("logs", "web", 1, "--tail", 2).out == "line 5\nno end"


def test_follows_until_the_replica_has_ended_and_all_is_read(
    run: Run, launched: tuple[Replica, Path], meanwhile: Meanwhile
) -> None:
    replica, log = launched

    def write(text: str) -> None:
        with log.open("a") as file:
            file.write(text)

    def last_words() -> None:
        acts.fail(replica)
        write("last words\n")

    meanwhile(lambda: write("line 6\n"), lambda: None, last_words)
    result = run("logs", "web", 1, "--follow", "--tail", 1)
    assert (result.code, result.out) == (0, "line 5\nline 6\nlast words\n")


def test_follows_across_rotation(run: Run, launched: tuple[Replica, Path], meanwhile: Meanwhile) -> None:
    replica, log = launched

    def rotate() -> None:
        with log.open("ab") as file:
            file.write(b"the end of the old file\n")
        log.rename(log.with_name(f"run.log.{0:020d}"))
        log.write_bytes(b"a new file\n")

    meanwhile(rotate, lambda: acts.fail(replica))
    out = run("logs", "web", 1, "--follow", "--tail", 1).out
    assert out == "line 5\nthe end of the old file\na new file\n"


def test_follows_a_replica_that_has_no_log_yet(
    run: Run, yaml: Path, config: Config, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    replica = acts.starting(acts.service())
    log = config.home / "run.log"

    def begin() -> None:
        log.write_text("hello\n")
        Replica.objects.filter(pk=replica.pk).update(log=str(log))

    meanwhile(lambda: None, begin, lambda: acts.fail(replica))
    assert run("logs", "web", 1, "--follow").out == "hello\n"


def test_a_replica_that_never_had_a_log(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    acts.pending(acts.service())
    result = run("logs", "web", 1)
    assert result.code == 4
    assert "web/1 has written no log: it is PENDING." in result.err
    assert "`manage.py logs web 1 --launch`" in result.err
    number = acts.operation_of(Replica.objects.get()).pk
    meanwhile(lambda: operations.request_cancel(number, actor="ann"))
    assert run("logs", "web", 1, "--follow").code == 4


def test_the_log_of_the_launch(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    replica = acts.pending(acts.service())
    result = run("logs", "web", 1, "--launch")
    assert (result.code, "has written nothing yet" in result.err) == (4, True)
    acts.say(acts.operation_of(replica), "Collecting magika\nDone\n")
    assert run("logs", "web", 1, "--launch").out == "Collecting magika\nDone\n"
    assert run("logs", "web", 1, "--launch", "--tail", 1).out == "Done\n"


def test_follows_a_launch_until_it_is_settled(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    replica = acts.pending(acts.service())
    operation = acts.operation_of(replica)

    def fail() -> None:
        claimed = operations.claim(operation.pk, acts.WORKER)
        assert claimed is not None
        acts.say(operation, "setup failed\n")
        usage = operations.Usage()
        operations.settle(claimed, OperationStatus.FAILED, "setup_failed", reason="exit 1", usage=usage, error="exit 1")

    meanwhile(lambda: acts.say(operation, "setup\n"), fail)
    result = run("logs", "web", 1, "--launch", "--follow")
    assert (result.code, result.out) == (0, "setup\nsetup failed\n")


def test_an_empty_log_is_said_to_be_empty(run: Run, launched: tuple[Replica, Path]) -> None:
    launched[1].write_bytes(b"")
    result = run("logs", "web", 1)
    assert (result.code, result.out) == (0, "")
    assert result.err == "warning: The log of web/1 is empty so far.\n"


def test_a_log_that_was_removed(run: Run, launched: tuple[Replica, Path]) -> None:
    launched[1].unlink()
    result = run("logs", "web", 1)
    assert (result.code, "is gone" in result.err) == (4, True)


def test_a_replica_that_is_not_there(run: Run, launched: tuple[Replica, Path]) -> None:
    result = run("logs", "web", 7)
    assert (result.code, result.err) == (4, "Error: Service web has no replica 7. It has replicas 1.\n")
    assert run("logs", "nope", 1).code == 4
    assert run("logs", "web", "0").code == 2
    assert run("logs", "web", "one").code == 2


def test_following_ends_when_the_row_is_purged(run: Run, launched: tuple[Replica, Path], meanwhile: Meanwhile) -> None:
    def purge() -> None:
        acts.fail(launched[0])
        services.take_down(acts.service().pk, purge=True, actor="ann")
        assert services.forget(acts.service().pk, actor="controller")

    meanwhile(purge)
    assert run("logs", "web", 1, "--follow").code == 0


def test_the_tail_of_a_long_log_is_found_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = [b"%d %s\n" % (number, b"x" * (number % 97)) for number in range(10_000)]
    log.write_bytes(b"".join(lines))
    for count in (1, 2, 999, 5_000, 10_000, 20_000):
        assert log.read_bytes()[_start_of_tail(log, count) :] == b"".join(lines[-count:])


def test_the_tail_spans_rotated_files_and_stops_where_they_were_removed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (tmp_path / f"log.{100:020d}").write_bytes(b"a\nb\nc")
    log.write_bytes(b"d\ne\n")
    assert _start_of_tail(log, 2) == 102 + 2
    assert _start_of_tail(log, 1) == 100 + 5 + 2
    assert _start_of_tail(log, 50) == 100
