"""Sessions: conversations with turns, checkpoints and summaries (memory wall 11.3)."""
