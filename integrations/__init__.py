"""Tests of adapters whose frameworks are not installed for `make test`; see `make integrations`."""
