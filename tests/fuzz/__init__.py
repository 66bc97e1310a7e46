"""What comes from outside is anything at all; `make fuzz` tries a thousand times as much of it."""
