"""The store on a database server: asyncpg, transactions of one tenant, row-level security."""
