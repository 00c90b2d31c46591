"""What the author means: every name is found, every type is known, every order that decides something is total.

In come syntax trees, out go the typed queries of `language/expressions.py`. A new clause of SQL is read here: what
stands in FROM by `relations.py`, a block and its clauses by `queries.py`, a scalar by `scalars.py`.
"""
