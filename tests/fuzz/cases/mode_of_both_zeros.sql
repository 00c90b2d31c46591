SELECT kind, mode(price) AS m FROM s GROUP BY kind
