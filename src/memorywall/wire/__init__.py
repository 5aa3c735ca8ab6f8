"""The wire contract: requests, responses and the operations table.

Routes, the OpenAPI document, the reference and the methods of the client follow from the table.
"""
