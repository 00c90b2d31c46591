CREATE VIEW top_words
COMMENT 'the three words that most was searched for, per day; of equals the first in the alphabet' AS
SELECT day, word, searches, place
FROM (
  SELECT day, word, searches, row_number() OVER (PARTITION BY day ORDER BY searches DESC, word) AS place
  FROM (
    SELECT date_trunc('day', ts) AS day, lower(word) AS word, count(*) AS searches
    FROM events LATERAL VIEW explode(split(query, ' +')) t AS word
    WHERE kind = 'show'
    GROUP BY date_trunc('day', ts), lower(word)))
WHERE place <= 3;
