"""Words for the person at the terminal or the console: amounts, and what a command waits for.

In: numbers, and blocks that may take long. Out: text and lines of narration. Nothing here knows Postgres.
"""
