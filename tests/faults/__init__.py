"""Faults: kill -9, a full disk, a second server, signals, erasure, rude clients."""
