"""How Django writes times where a page leaves that to it."""
