"""The language of conditions: parsed once, evaluated in memory or compiled to SQL.

`value.customer.tier = "gold" and (tags contains "vip" or not exists value.address)`

A condition has no side effects, always ends, and has a value for every record. The tree is defined
in `records/condition.py`.
"""
