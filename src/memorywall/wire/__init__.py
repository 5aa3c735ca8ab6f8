"""The wire contract: request and reply bodies and the one table of operations.

Routes, the OpenAPI document, the reference and the client's methods all follow from it.
"""
