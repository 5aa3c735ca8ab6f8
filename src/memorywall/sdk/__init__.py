"""The client: one implementation for sync and async over a replaceable transport.

The logic consists of generator functions that yield effects and receive their results
(`effects.py`). `executors.py` runs the effects, sync or async; `http.py` implements them over HTTP.
`facade.py` makes a blocking and an asynchronous method of a generator function, of the SDK or of an
adapter.
"""
