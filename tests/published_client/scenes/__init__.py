"""What the published client does, one matter a file; run in its own environment."""
