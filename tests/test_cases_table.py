"""docs/cases.md names tests that are there."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS.parent / "docs" / "cases.md").read_text()


def test_every_case_names_tests_that_are_there() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("| ") and not line.startswith("| given")]
    assert len(rows) > 40
    for row in rows:
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row)
        assert named, row
        for file, name in named:
            assert re.search(rf"def {name}\(", (TESTS / file).read_text()), f"{file} has no {name}"
