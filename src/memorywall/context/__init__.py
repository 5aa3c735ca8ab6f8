"""The context compiler: which memories a prompt contains, within the window of its model."""
