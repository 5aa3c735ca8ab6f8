"""The client: one implementation in two colours over a swappable transport.

Logic is generator functions that yield what they want done and are sent what came of it
(`steps.py`); `drivers.py` does those things, blocking or not; `facade.py` turns a generator
function into a method of either colour. `local.py` alone knows the server, for a client without
one.
"""
