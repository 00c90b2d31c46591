-- Comments, which tools that list schemas and views show to readers.
COMMENT ON SCHEMA analytics IS
  'Views over Kafka. Each equals its SELECT over every record below lamina.offsets. Read them with autocommit: a session that pauses within a transaction for longer than idle_in_transaction_session_timeout loses its connection.';
COMMENT ON SCHEMA lamina IS
  'Bookkeeping. Readers may read freshness, offsets, bad records and more. The views are in analytics.';
COMMENT ON SCHEMA cells IS
  'Tables from which the views read. Readers have no rights here.';
COMMENT ON SCHEMA realtime IS
  'Tables for micro-batches and rebuilds. Readers have no rights here.';
COMMENT ON SCHEMA spark IS
  'Functions that the views call.';
COMMENT ON VIEW lamina.freshness IS
  'Per view: its newest record, and the seconds for which it may lack records.';
COMMENT ON VIEW lamina.freshness_met IS
  'Per view with fresh_within: the share of the minutes of the last hour and day in which the view met it.';
COMMENT ON VIEW lamina.offsets IS
  'Per view and partition: every record from first_offset on and below next_offset is counted, or in quarantine. Read it and the view in one REPEATABLE READ transaction.';
COMMENT ON VIEW lamina.generations IS
  'Per view: its generations, and the one that readers read (published).';
COMMENT ON VIEW lamina.bad_records IS
  'Per source and reason: the number of records that went to quarantine, or count without a field (counted).';
COMMENT ON VIEW lamina.bad_values IS
  'Bad records as texts. The owner grants the right to read them: GRANT SELECT ON lamina.bad_values TO ann.';
COMMENT ON VIEW lamina.duplicates IS
  'Per stream with UNIQUE: records that are copies of a counted one, and those that differ from it (conflicts).';
COMMENT ON VIEW lamina.provenance IS
  'Per view: the definition, generations and offsets behind its rows, as in a receipt.';
COMMENT ON VIEW lamina.previews IS
  'Per preview and view: true if it is served, and its freshness.';
COMMENT ON VIEW lamina.preview_offsets IS
  'Per previewed view and partition: every record from first_offset on and below next_offset is counted, or in quarantine.';
