SELECT kafka_offset AS o, nullif(k, big) AS k, nullif(money, wide) AS money FROM s
