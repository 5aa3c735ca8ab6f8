"""Tests of the context compiler."""
