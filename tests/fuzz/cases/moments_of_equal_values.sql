SELECT m, stddev_pop(m) AS s, regr_slope(m, m) AS r, corr(m, m) AS c
FROM (SELECT kafka_offset AS o, max(19.99) AS m FROM s GROUP BY kafka_offset) AS q GROUP BY m
