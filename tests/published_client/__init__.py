"""The published OpenIntent client, unmodified, against this server."""
