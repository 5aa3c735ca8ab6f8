"""memorywall in this process: clients that call the operation runner, without a server."""
