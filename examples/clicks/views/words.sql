CREATE VIEW words (word, searches, users)
COMMENT 'how often each word was searched for' AS
SELECT lower(word), count(*), count(DISTINCT user_id)
FROM events LATERAL VIEW explode(split(query, ' +')) t AS word
WHERE kind = 'show'
GROUP BY lower(word);
