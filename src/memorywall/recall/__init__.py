"""Finding entries by what they are about: words, meaning, and what stands around them."""
