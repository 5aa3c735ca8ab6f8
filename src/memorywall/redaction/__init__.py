"""Detection and removal of personal data in text. Pure functions."""
