CREATE VIEW visits (
  ip, began, ended COMMENT 'half an hour after the last request', pages, failures, first_path, last_path
)
COMMENT 'what an address asked for until it was silent for half an hour; a late request joins two visits at once' AS
SELECT ip, session_window.start, session_window.end, count(*), count_if(status >= 400), first(path), last(path)
FROM requests
GROUP BY ip, session_window(ts, '30 minutes');
