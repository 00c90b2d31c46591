SELECT kind, count(*) AS n, sum(big) FILTER (WHERE word NOT LIKE 'a%') AS s FROM s WHERE kind NOT LIKE '_' GROUP BY kind HAVING max(word) NOT LIKE 'b%'
