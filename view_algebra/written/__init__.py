"""The author's text: syntax with its places in the file, and declarations.

The texts of a catalog come in. Syntax trees and declarations go out, and nothing writes to a tree once it is declared:
`view_algebra/oracle.py` edits a copy for the SELECT that `lamina check` runs.

    tables         a table as SQL over its changes
    declarations/  statements as declarations, with functions of the catalog and checks
    clauses        the clauses that the compiler reads, and the refusal of all others
    rewrites/      WINDOW, PIVOT and QUALIFY as SQL without them
    ways_out/      the SQL that a refusal offers
    naming         the sources and views that a declaration names
    dialect        the parser, and syntax as text
"""
