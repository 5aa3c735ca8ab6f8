"""Tests of numbers of tokens."""
