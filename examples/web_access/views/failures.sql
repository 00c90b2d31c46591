CREATE VIEW failures
COMMENT 'every request that failed, as it was logged' AS
SELECT line_no, ts, ip, method, path, status
FROM requests
WHERE status >= 400;
