"""Documents that facets select meet every condition of a search."""

from __future__ import annotations
