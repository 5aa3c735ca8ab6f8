"""The share of the statements that summaries must keep and do keep."""
