SELECT mode(CASE WHEN kafka_offset % 7 < 2 THEN 0D WHEN kafka_offset % 7 < 4 THEN 0D * -1D ELSE 3D END) AS m FROM s
