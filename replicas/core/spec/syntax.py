"""What the YAML parser complains about, in words that say what to do."""

import yaml

_HINTS = {
    "mapping values are not allowed in this context": (
        "a `:` stands where no key can be: the indent is wrong, or a text with `: ` in it needs quotes"
    ),
    "did not find expected key": "the indent fits no line above, or something follows a value that is complete",
    "did not find expected '-' indicator": "the indent fits no line above: a list goes on with `- ` at the same column",
    "found unexpected end of stream": "a quote is opened and never closed",
    "did not find expected ',' or ']'": "a `[` is opened and not closed by `]`, or a `,` is missing",
    "did not find expected ',' or '}'": "a `{` is opened and not closed by `}`, or a `,` is missing",
    "did not find expected <document start>": "the text goes on after its end: is a line not indented as the others?",
    "did not find expected alphabetic or numeric character": "`*` and `&` begin an alias or an anchor: quote the text",
}


def explain(error: yaml.MarkedYAMLError, text: str) -> tuple[int, int, str]:
    """(line, column) from 0 and the message for an error of the parser."""
    mark = error.problem_mark or error.context_mark
    line, column, index = (mark.line, mark.column, mark.index) if mark else (0, 0, 0)
    problem = str(error.problem or error.context or "it is not YAML")
    at = text[index : index + 1]
    if problem == "found character that cannot start any token":
        if at == "\t":
            return line, column, "a tab stands in the indent: YAML takes only spaces"
        return line, column, f"no value can begin with {at or 'this character'}: quote it"
    if problem == "could not find expected ':'" and error.context_mark:
        mark = error.context_mark
        return mark.line, mark.column, "this is no `key: value`: a `:` is missing, or the line before ends too early"
    hint = _HINTS.get(problem)
    if hint is None:
        return line, column, f"this is not YAML: {problem}"
    if error.context_mark and error.context_mark.line != line:
        hint += f" (it belongs to what begins in line {error.context_mark.line + 1})"
    return line, column, hint
