"""The quality and the speed of recall."""
