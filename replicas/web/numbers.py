"""Numbers out of addresses and forms: whatever stands there, they are bounded before anything is made of them."""

import re
from typing import Any

from django import forms

WHOLE = re.compile(r"[+-]?[0-9]{1,20}|", re.ASCII)


def whole(text: str | None, least: int = 0, most: int = 2**62) -> int | None:
    """The number that ASCII digits write, if it is between the bounds; None for everything else, however long."""
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    number = int(digits) if len(digits) <= len(str(most)) else most + 1
    return number if least <= number <= most else None


class WholeField(forms.IntegerField):
    """A number as people write one: Python's own reading also takes 1_0, and digits of other scripts."""

    def to_python(self, value: Any) -> int | None:
        """The number. Raises ValidationError."""
        if isinstance(value, str) and not WHOLE.fullmatch(value.strip()):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)
