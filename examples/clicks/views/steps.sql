CREATE VIEW steps
COMMENT 'every event of a user, with its place in the topic' AS
SELECT user_id, kind, ts, kafka_partition AS part, kafka_offset AS place
FROM events
WHERE user_id IS NOT NULL;
