"""`python -m memorywall`."""

from memorywall.cli import main

main()
