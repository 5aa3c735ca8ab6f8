"""What concurrent clients saw, and proof that one honest server can have shown it to them."""
