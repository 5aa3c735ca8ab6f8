"""The store on a server: asyncpg, one transaction of one tenant, row-level security behind it."""
