SELECT word, k, grouping_id() AS g, count(*) AS n FROM s GROUP BY CUBE(word), k
