"""How well and how fast recall finds what is asked for."""
