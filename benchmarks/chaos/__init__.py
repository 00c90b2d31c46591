"""Everything at once, killed at random moments, while readers compare every view with DuckDB.

A producer sends. Speed layers, rebuilds, leaps, archive runs and applies run as separate processes. Faults strike them,
their services, their disks and their topics. Readers take one snapshot of Postgres after another, and every view in it
must equal its SELECT over exactly the records below the offsets in the same snapshot.

    world.py         the declarations and the records
    parcels.py       records in Avro, and their schema registry
    hostile.py       records that do harm
    chaos_oracle.py  the expected rows
    producer.py      the sender of records
    stage.py         services and processes
    table.py         the table of faults
    faults/          the faults, a function each
    readers.py       snapshots
    storm.py         the run
    report.py        the page
"""
