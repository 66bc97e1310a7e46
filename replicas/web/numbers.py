"""Numbers out of addresses: whatever stands there, they are bounded before anything is made of them."""


def whole(text: str | None, least: int = 0, most: int = 2**62) -> int | None:
    """The number that ASCII digits write, if it is between the bounds; None for everything else, however long."""
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    number = int(digits) if len(digits) <= len(str(most)) else most + 1
    return number if least <= number <= most else None
