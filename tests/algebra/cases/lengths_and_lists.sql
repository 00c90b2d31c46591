CREATE TABLE trips (
  id BIGINT, cab STRING, began_at TIMESTAMP, ended_at TIMESTAMP, stops ARRAY<STRING>
) USING kafka OPTIONS (topic 'trips', format 'json');

CREATE VIEW taken AS
SELECT cab, avg(ended_at - began_at) AS usual, max(ended_at - began_at) AS longest FROM trips GROUP BY cab;

CREATE VIEW slow AS
SELECT cab, longest - usual AS more FROM taken WHERE usual > INTERVAL 1 HOUR;

CREATE VIEW ways AS
SELECT stops, size(stops) AS length, count(*) AS trips FROM trips GROUP BY stops;

CREATE VIEW by_cab AS
SELECT cab, map_from_entries(collect_list(struct(first_stop, n))) AS begun
FROM (SELECT cab, stops[0] AS first_stop, count(*) AS n FROM trips GROUP BY cab, stops[0])
GROUP BY cab;

CREATE VIEW ways_of_cabs AS
SELECT cab, collect_set(stops) AS ways FROM trips GROUP BY cab;
