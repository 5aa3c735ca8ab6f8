"""Search of entries by content: words, meaning and neighbours."""
