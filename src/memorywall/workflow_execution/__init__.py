"""Executes a workflow file: its intent, its tasks in order, its agents as local functions or
stubs."""
