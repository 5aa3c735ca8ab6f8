"""How much of what must be kept do summaries keep?"""
