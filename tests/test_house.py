"""The house rules that no linter knows: sizes, purity of the core, one place for states, and docs that are true."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from replicas.config import DEFAULT_HOME, Config

BASE = Path(__file__).resolve().parents[1]
CODE = ("replicas", "controlplane", "benchmarks", "examples", "tests")
PRODUCT = ("replicas", "controlplane")
FILE_LINES = 400
FUNCTION_LINES = 60
MEDIAN_LINES = 12

# Who may start threads, and why: everything else runs in one thread per process, or on an event loop.
THREADS = {
    "replicas/jobs/runner.py",  # keeps an operation's heartbeat while a step runs
    "replicas/providers/fake.py",
    "replicas/providers/shim.py",
    "replicas/providers/shim_output.py",
    "replicas/web/offload.py",  # queries of websockets, outside the one thread of Django's
}
# Where time is measured: the limits' own rule, the benchmarks' tests, and the long runs that print what they measure.
MEASURING = ("tests/support/patience.py", "tests/benchmarks/", "tests/chaos/", "tests/core/explore")
# The clock and other sources of surprise that the pure core must not read.
IMPURE = {
    *("time", "datetime.now", "random", "secrets", "uuid", "os", "io", "socket", "subprocess", "threading", "asyncio"),
    *("pathlib", "tempfile", "shutil", "logging", "urllib", "http", "select", "signal"),
}


def sources(*roots: str) -> Iterator[Path]:
    """Every Python file of ours below the directories."""
    for root in roots:
        for path in sorted((BASE / root).rglob("*.py")):
            if "__pycache__" not in path.parts:
                yield path


def name_of(path: Path) -> str:
    return str(path.relative_to(BASE))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), name_of(path))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function's name and how many lines it takes, without its docstring."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            documented = ast.get_docstring(node, clean=False)
            yield f"{name_of(path)}:{node.name}", lines - (documented.count("\n") + 1 if documented else 0)


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules that are imported anywhere in the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_no_file_is_long() -> None:
    long = {name_of(path): n for path in sources(*CODE) if (n := len(path.read_text().splitlines())) > FILE_LINES}
    assert not {name: n for name, n in long.items() if "/migrations/" not in name}


def test_no_function_is_long() -> None:
    assert not {name: n for path in sources(*CODE) for name, n in functions(path) if n > FUNCTION_LINES}


def test_most_functions_are_short() -> None:
    lengths = sorted(n for path in sources(*PRODUCT) for _, n in functions(path))
    assert lengths[len(lengths) // 2] <= MEDIAN_LINES
    assert lengths[len(lengths) * 9 // 10] <= 32


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path)
        for path in sources(*CODE)
        if path.read_text().strip() and "/migrations/" not in name_of(path) and not ast.get_docstring(tree_of(path))
    ]
    assert not silent


def test_the_core_is_pure() -> None:
    for path in sources("replicas/core"):
        tree = tree_of(path)
        found = {name.split(".")[0] for name in imports(tree)} & IMPURE
        assert not found, f"{name_of(path)} imports {found}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in {"now", "utcnow", "today"}, (
                    f"{name_of(path)}:{node.lineno} reads the clock"
                )
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"open", "print", "input"}, f"{name_of(path)}:{node.lineno} does IO"


def test_a_replicas_state_is_written_in_one_place() -> None:
    """An `update(state=...)` or an assignment to the `.state` of something belongs into the transition alone."""
    for path in sources(*PRODUCT):
        if name_of(path) == "replicas/actions/transition.py":
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update":
                assert "state" not in {word.arg for word in node.keywords}, f"{name_of(path)}:{node.lineno}"
            for target in node.targets if isinstance(node, ast.Assign) else []:
                if isinstance(target, ast.Attribute) and target.attr == "state":
                    own = isinstance(target.value, ast.Name) and target.value.id == "self"
                    assert own, f"{name_of(path)}:{node.lineno}"


def test_threads_are_started_only_where_it_is_known() -> None:
    found = {
        name_of(path)
        for path in sources(*PRODUCT)
        if {"threading", "_thread"} & {name.split(".")[0] for name in imports(tree_of(path))}
    }
    assert found <= THREADS


def test_tests_wait_by_asking() -> None:
    """A `time.sleep` outside a loop that asks again hides a race; those that are the thing itself say so."""
    for path in sources("tests"):
        lines, tree = path.read_text().splitlines(), tree_of(path)
        loops = [
            (node.lineno, node.end_lineno or 0) for node in ast.walk(tree) if isinstance(node, ast.While | ast.For)
        ]
        for node in ast.walk(tree):
            sleeps = isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep"
            if sleeps and not any(first <= node.lineno <= last for first, last in loops):
                assert "#" in lines[node.lineno - 1], f"{name_of(path)}:{node.lineno} sleeps without a reason"


def test_tests_hold_no_time_of_a_clock() -> None:
    """An upper bound in seconds is `within` or `spent`, which allow for a machine that is slow or busy."""
    for path in sources("tests"):
        if name_of(path).startswith(MEASURING):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
                assert not list(below(node.test)), f"{name_of(path)}:{node.lineno} is a bound of the clock"
            if isinstance(node, ast.Attribute):
                found = node.attr in {"process_time", "perf_counter"}
                assert not found, f"{name_of(path)}:{node.lineno} is a benchmark"


def below(test: ast.Compare) -> Iterator[ast.expr]:
    """The readings of a clock that must be less than something."""
    terms = [test.left, *test.comparators]
    for less, op, more in zip(terms, test.ops, terms[1:], strict=False):
        small = less if isinstance(op, ast.Lt | ast.LtE) else more if isinstance(op, ast.Gt | ast.GtE) else None
        if small is not None and "monotonic()" in ast.unparse(small):
            yield small


def test_docs_list_every_setting_with_its_default() -> None:
    text = (BASE / "docs" / "operation.md").read_text()
    for each in fields(Config):
        if each.name == "home":
            continue
        assert f"| `ROLLCALL_{each.name.upper()}` | {shown(each.default)} | {each.metadata['help']} |" in text, (
            each.name
        )


def shown(value: object) -> str:
    """A default as the table shows it."""
    if isinstance(value, bool):
        return "`1`" if value else "`0`"
    if value in ("", ()):
        return "empty"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def test_the_default_home_is_in_the_project() -> None:
    assert DEFAULT_HOME == BASE / "var"


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/operation.md", "docs/api.md"])
def test_links_between_documents_lead_somewhere(name: str) -> None:
    text = (BASE / name).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert ((BASE / name).parent / target).exists(), f"{name} links to {target}"


def test_every_command_that_the_readme_names_exists() -> None:
    from django.core.management import get_commands

    text = (BASE / "README.md").read_text()
    named = set(re.findall(r"manage\.py ([a-z]+)", text)) | set(re.findall(r"^\| `([a-z]+)[` ]", text, re.M))
    assert named
    assert named <= set(get_commands())


def test_every_make_target_that_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (BASE / "Makefile").read_text(), re.M))
    for name in ("README.md", "docs/operation.md"):
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", (BASE / name).read_text(), re.M))
        assert named <= targets, named - targets
