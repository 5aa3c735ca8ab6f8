"""What the rules of worthiness admit and refuse, on labelled candidates."""
