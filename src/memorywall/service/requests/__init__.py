"""The parts of one request: its context, its events, and checks that need no access rule."""
