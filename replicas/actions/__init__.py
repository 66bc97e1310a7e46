"""The only writers: every change of a row goes through here, with its event in the same transaction."""
