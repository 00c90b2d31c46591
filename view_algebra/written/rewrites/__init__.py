"""Clauses rewritten as SQL that has the same rows without them, so that the later stages never see them.

Syntax with the clause comes in. Syntax without it goes out, or a refusal at the clause's place.

named_windows   WINDOW, written into OVER when a text is declared
pivots          PIVOT as GROUP BY, and UNPIVOT as UNION ALL, once the columns of the source are known
qualify         QUALIFY as WHERE around a subquery, once the names of the outputs are known
"""
