"""From YAML text to a tree with a line and column for every part, within limits that hold for hostile texts.

The events come from PyYAML's parser. The tree is our own, because PyYAML's constructors turn `NO` into False and 22:22
into 1342, keep the last of two equal keys, and spend seconds on a small text of merge keys.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from replicas.core.spec.errors import Path, SpecError, SpecErrors, clip, path_text
from replicas.core.spec.scalars import Plain, quote_reason
from replicas.core.spec.syntax import explain

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 5_000  # with aliases expanded
MAX_CHARS = 1024 * 1024  # with aliases expanded
MAX_ALIASES = 100
MAX_NOTED = 200

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_TEXT_TAG = "tag:yaml.org,2002:str"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's safe loader, of which only the events are used: nothing is resolved or constructed by it."""


@dataclass(slots=True)
class Node:
    """A part of the text. `line` and `column` count from 0; `start` and `end` are offsets in the text, of a scalar its
    whole span, of a mapping or a list only its beginning.

    `nodes` and `chars` are its size with aliases expanded. `marked`: it is an alias, or has an anchor or a tag.
    """

    line: int
    column: int
    start: int
    end: int
    marked: bool = False
    nodes: int = 1
    chars: int = 0

    def plain_value(self) -> Any:
        """The part as dicts, lists, texts, `Plain` for unquoted values, and None."""
        raise NotImplementedError

    def child(self, key: str | int) -> "Node | None":
        """The part at a key or index, or None."""
        return None


@dataclass(slots=True)
class Scalar(Node):
    text: str = ""
    plain: bool = False

    @property
    def empty(self) -> bool:
        return self.plain and self.text in NULLS

    def plain_value(self) -> Any:
        if not self.plain:
            return self.text
        return None if self.empty else Plain(self.text)


@dataclass(slots=True)
class Items(Node):
    items: list[Node] = field(default_factory=list)

    def plain_value(self) -> Any:
        return [item.plain_value() for item in self.items]

    def child(self, key: str | int) -> Node | None:
        return self.items[key] if isinstance(key, int) and 0 <= key < len(self.items) else None


@dataclass(slots=True)
class Fields(Node):
    """A mapping: `fields` has the key's part and the value's part of each key, merged ones included."""

    fields: dict[str, tuple[Node, Node]] = field(default_factory=dict)
    merged: bool = False

    def plain_value(self) -> Any:
        return {key: value.plain_value() for key, (_, value) in self.fields.items()}

    def child(self, key: str | int) -> Node | None:
        found = self.fields.get(key) if isinstance(key, str) else None
        return found[1] if found else None


@dataclass(slots=True)
class Document:
    """The tree of a text, and the faults that did not keep the tree from being built."""

    text: str
    root: Node
    errors: list[SpecError]


def decode(source: str | bytes) -> str:
    """The text of a file's bytes. Raises SpecErrors for what is no UTF-8, too large, or holds control characters."""
    text = source if isinstance(source, str) else _utf8(source)
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _fault(0, 0, f"the text is larger than {MAX_BYTES // 1024} KiB: move large parts to files in the workdir")
    bad = _UNPRINTABLE.search(text, 1 if text.startswith("\ufeff") else 0)
    if bad:
        code = f"U+{ord(bad.group()):04X}"
        message = f"the character {code} cannot stand in YAML: remove it, or write it as an escape in quotes"
        raise _fault(*_position(text[: bad.start()]), message)
    return text


def _utf8(source: bytes) -> str:
    if source[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise _fault(0, 0, "the text is UTF-16: save it as UTF-8")
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        before = source[: error.start].decode("utf-8")
        raise _fault(*_position(before), "the text is not UTF-8 from here on: save it as UTF-8") from None


def load(text: str) -> Document:
    """The tree of a text (see `decode`). Raises SpecErrors where no tree can be built.

    One document, or two of which the first has only `name` (as SkyPilot allows): the name then counts for the second.
    """
    offset = 1 if text.startswith("\ufeff") else 0
    composer = _Composer(_Loader(text[offset:]), offset)
    try:
        roots = composer.documents()
    except yaml.MarkedYAMLError as error:
        raise _fault(*explain(error, text[offset:])) from None
    except yaml.YAMLError as error:
        raise _fault(0, 0, f"this is not YAML: {clip(str(error))}") from None
    root = _one(roots)
    return Document(text, root, composer.errors)


def _one(roots: list[Node]) -> Node:
    if not roots or (len(roots) == 1 and isinstance(roots[0], Scalar) and roots[0].empty):
        raise _fault(0, 0, "the text is empty: a spec needs at least `name`, `service` and `run`")
    for root in roots:
        if not isinstance(root, Fields):
            what = "a list" if isinstance(root, Items) else f'the text "{clip(getattr(root, "text", ""))}"'
            message = f"this is {what} and no spec: a spec is a mapping, which begins like `name: web`"
            raise _fault(root.line, root.column, message)
    first = roots[0]
    if len(roots) == 1:
        return first
    second = roots[1]
    if len(roots) == 2 and isinstance(first, Fields) and isinstance(second, Fields) and set(first.fields) == {"name"}:
        second.fields.setdefault("name", first.fields["name"])
        return second
    extra = roots[-1] if len(roots) > 2 else second
    message = "a second document begins here: one text is one service, apply each by itself"
    raise _fault(extra.line, extra.column, message)


class _Composer:
    """Builds the tree from the parser's events and keeps the limits."""

    def __init__(self, events: Any, offset: int):
        self._events = events
        self._offset = offset
        self._anchors: dict[str, Node | None] = {}  # None while the part is not complete
        self._seen = 0
        self._aliases = 0
        self.errors: list[SpecError] = []

    def documents(self) -> list[Node]:
        roots: list[Node] = []
        while True:
            event = self._events.get_event()
            if isinstance(event, yaml.StreamEndEvent):
                return roots
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                roots.append(self._part(self._events.get_event(), ()))
                if len(roots) > 3:
                    return roots

    def _part(self, event: Any, path: Path) -> Node:
        mark = event.start_mark
        self._seen += 1
        if self._seen > MAX_NODES:
            raise _fault(mark.line, mark.column, f"the text has more than {MAX_NODES} parts", path)
        if len(path) > MAX_DEPTH:
            raise _fault(mark.line, mark.column, f"the text is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        anchor = event.anchor
        if anchor:
            self._anchors[anchor] = None
        node = self._build(event, path)
        if anchor:
            self._anchors[anchor] = node
        return node

    def _build(self, event: Any, path: Path) -> Node:
        mark = event.start_mark
        place = (mark.line, mark.column, mark.index + self._offset, event.end_mark.index + self._offset)
        marked = bool(event.anchor or event.tag)
        if event.tag and event.tag != _TEXT_TAG:
            self._note(mark, path, f"tags such as {clip(event.tag, 30)} are not taken: remove it")
        if isinstance(event, yaml.ScalarEvent):
            plain = bool(event.implicit[0]) and not event.style and not event.tag
            return Scalar(*place, marked, text=event.value, plain=plain, chars=len(event.value))
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(Items(*place, marked), path)
        return self._fields(Fields(*place, marked), path)

    def _alias(self, event: Any, path: Path) -> Node:
        mark = event.start_mark
        if event.anchor not in self._anchors:
            raise _fault(
                mark.line, mark.column, f"*{clip(event.anchor)} refers to no anchor &{clip(event.anchor)} above", path
            )
        target = self._anchors[event.anchor]
        if target is None:
            raise _fault(mark.line, mark.column, f"*{clip(event.anchor)} refers to the part that it stands in", path)
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            raise _fault(mark.line, mark.column, f"the text has more than {MAX_ALIASES} aliases", path)
        return target

    def _items(self, node: Items, path: Path) -> Items:
        while not isinstance(event := self._events.get_event(), yaml.SequenceEndEvent):
            item = self._part(event, (*path, len(node.items)))
            self._grow(node, item, path)
            node.items.append(item)
        return node

    def _fields(self, node: Fields, path: Path) -> Fields:
        bases: list[Node] = []
        while not isinstance(event := self._events.get_event(), yaml.MappingEndEvent):
            key = self._part(event, (*path, "?"))
            name = self._key(key, path)
            value = self._part(self._events.get_event(), (*path, name or "?"))
            self._grow(node, key, path)
            self._grow(node, value, path)
            if name is None:
                continue
            if name == "<<" and isinstance(key, Scalar) and key.plain:
                bases.extend(value.items if isinstance(value, Items) else [value])
            elif name in node.fields:
                first = node.fields[name][0].line + 1
                message = f"the key stands twice, here and in line {first}: remove one of them"
                self._note(key, (*path, name), message)
            else:
                node.fields[name] = (key, value)
        self._merge(node, bases, path)
        return node

    def _key(self, key: Node, path: Path) -> str | None:
        """The text of a key; None (and a noted fault) for what cannot be one."""
        if not isinstance(key, Scalar):
            self._note(key, path, "a key must be a text, not a list or a mapping")
        elif key.empty:
            self._note(key, path, "a key is empty: write the name of the field before the `:`")
        else:
            reason = quote_reason(key.text) if key.plain else None
            if reason:
                self._note(key, (*path, key.text), f"the key must be a text, but {reason}")
            return key.text
        return None

    def _merge(self, node: Fields, bases: list[Node], path: Path) -> None:
        """`<<`: the fields of other mappings, where the mapping has none of its own; the first one counts."""
        node.merged = bool(bases)
        for base in bases:
            if not isinstance(base, Fields):
                self._note(base, path, "`<<` takes the alias of a mapping, or a list of them")
                continue
            for name, pair in base.fields.items():
                node.fields.setdefault(name, pair)

    def _grow(self, node: Node, part: Node, path: Path) -> None:
        node.nodes += part.nodes
        node.chars += part.chars
        if node.nodes > MAX_NODES or node.chars > MAX_CHARS:
            raise _fault(part.line, part.column, "the aliases make the text too large: write less of them", path)

    def _note(self, place: Any, path: Path, message: str) -> None:
        if len(self.errors) < MAX_NOTED:
            self.errors.append(SpecError(path_text(path), place.line + 1, place.column + 1, message))


def _fault(line: int, column: int, message: str, path: Path = ()) -> SpecErrors:
    return SpecErrors([SpecError(path_text(path), line + 1, column + 1, message)])


def _position(before: str) -> tuple[int, int]:
    """(line, column) from 0 of what follows the text `before`."""
    lines = re.split(r"\r\n|\r|\n", before)
    return len(lines) - 1, len(lines[-1])
