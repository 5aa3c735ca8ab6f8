"""Long-term memory: episodes, worthiness, promotion, and facts that are valid in time."""
