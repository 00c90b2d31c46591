CREATE VIEW sizes (method, answers, middle, p99 COMMENT 'bytes that one answer in a hundred exceeds', deviation)
COMMENT 'how large answers are, in bytes, exactly' AS
SELECT method, count(bytes), median(bytes), percentile(bytes, 0.99), stddev(bytes)
FROM requests
GROUP BY method;
