-- What tools that list schemas and views show to a reader.
COMMENT ON SCHEMA analytics IS
  'Views over Kafka. Each equals its SELECT over every record below lamina.offsets. Read them with autocommit: a session that pauses within a transaction for longer than idle_in_transaction_session_timeout loses its connection.';
COMMENT ON SCHEMA lamina IS
  'Bookkeeping: freshness, offsets, bad records and more that readers may read. The views are in analytics.';
COMMENT ON SCHEMA cells IS
  'Tables that views are read from. Nothing for readers.';
COMMENT ON SCHEMA realtime IS
  'Tables that micro-batches are merged from. Nothing for readers.';
COMMENT ON SCHEMA spark IS
  'Functions of views. Nothing for readers.';
COMMENT ON VIEW lamina.freshness IS
  'Per view: its newest record, and for how many seconds there may have been records that it does not count.';
COMMENT ON VIEW lamina.freshness_met IS
  'Per view with fresh_within: the share of the minutes of the last hour and day in which it was met.';
COMMENT ON VIEW lamina.offsets IS
  'Per view and partition: every record from first_offset on and below next_offset is counted, or in quarantine. Read it in one transaction of REPEATABLE READ with the view.';
COMMENT ON VIEW lamina.generations IS
  'Per view: its tables, and the one that readers read (published).';
COMMENT ON VIEW lamina.bad_records IS
  'Per source and reason: how many records went to quarantine, or count without a field (counted).';
COMMENT ON VIEW lamina.bad_values IS
  'Bad records as texts. The owner lets one read them: GRANT SELECT ON lamina.bad_values TO ann.';
COMMENT ON VIEW lamina.duplicates IS
  'Per stream with UNIQUE: records that were copies of a counted one, and those that differ from it (conflicts).';
COMMENT ON VIEW lamina.provenance IS
  'Per view: what it is made of, as a receipt says it.';
COMMENT ON VIEW lamina.previews IS
  'Per preview and view: whether it is served, and how fresh it is.';
COMMENT ON VIEW lamina.preview_offsets IS
  'Per view of a preview and partition: the offsets between which every record is counted, or in quarantine.';
