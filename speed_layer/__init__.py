"""The speed layer: keeps every view fresh within a second.

In: the records of Kafka topics, in micro-batches. Out: cells, merged into Postgres. The promise: each record's effect
and the progress that covers it are written in one transaction, so a crash, a replay or a lost checkpoint changes
nothing.

One micro-batch of a source, in the order of its phases:

    noun          what it is                                                               module
    Position      the offsets that a member reads next, the tails and log times there      position.py
    Span          the offset range of a micro-batch, from a position on                    position.py
    Records       the raw records of a span, fetched on demand                             records.py
    Statements    the compiled texts that maintain all tables of cells of a source         statements.py
    Plans         the statements as Spark has planned them, kept for small micro-batches   plans.py
    Effect        the cells, bad records and ids of a span, before they are written        statements.py
    MicroBatch    a span's effect with the fence token, ready for its transaction          serving_layer
    Outcome       applied, already counted, or the reason to compute or to start again    serving_layer

The objects that carry it out, each with the state that it changes:

    SpeedLayer    the process: follows the catalog, takes queries over, notes progress     layer.py
    Query         a deployed source as this process serves it                              query.py
    Runs          decides which queries share a run                                        runs.py
    Run           one Structured Streaming query of Spark, which is split by source        run.py
    Member        a source in a run: its position, its current commit, its failure         member.py
    Flow          the phases of a member's micro-batches up to the commit (frozen)         flow.py
    Assumptions   the state that micro-batches are computed for, while it may change       flow.py
    RunningRanges the ranges of a source that are being computed, with their jobs          jobs.py
    Commit        one micro-batch on its way into Postgres                                 commit.py
    Planner       makes and finds the plans for the micro-batches of one run (frozen)      planner.py
    KeptPlans     the plans of a source, kept from one run to the next                     planner.py
    Preparation   the thread that plans an announced version                               planner.py
    Judge         the verdict on a query that failed                                       judge.py
    Hang, Search  a micro-batch that took too long, and the search for its record          endless.py
    Inquiry       asks the log for log times that progress lacks                           inquiry.py
    Jobs          the Spark jobs of one computation: how long they run, their end          jobs.py
    Resources     what all queries share: Spark, Postgres, Kafka, settings                 resources.py

Read `Member.take` first: it computes one micro-batch while the one before it is committed.
"""
