"""Keys and encryption: master keys, data keys, sealed values and digests."""
