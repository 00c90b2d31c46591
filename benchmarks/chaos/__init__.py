"""Everything at once, killed at moments that nobody chose: what readers see is compared with DuckDB all the while.

A producer sends; speed layers, rebuilds, leaps, archive runs and applies run as processes of their own; faults strike
them, their services, their disks and their topics. Readers take one snapshot of Postgres after the other, and every
view in it must equal its SELECT over exactly the records below the offsets that the same snapshot names.

world.py: what is declared and sent. hostile.py: records that mean harm. oracle.py: what is true. stage.py: services
and processes. table.py and faults/: the faults, a function each. readers.py: snapshots. storm.py: the run. report.py:
the page.
"""
