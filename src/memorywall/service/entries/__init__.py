"""The rules of entries: every entry is created, changed and removed here."""
