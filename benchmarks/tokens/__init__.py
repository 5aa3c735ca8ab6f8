"""Calibrates the estimate of tokens and measures its errors."""
