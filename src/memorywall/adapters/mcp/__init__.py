"""A server of the Model Context Protocol, over stdio and over streamable HTTP."""
