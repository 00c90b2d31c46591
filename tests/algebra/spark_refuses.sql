-- refuse_windows_together: two windows of time
SELECT window(ts, '1 hour').start AS a, window(ts, '2 hours').start AS b, n FROM s;
-- refuse_ungrouped: a correlated subquery, of groups
SELECT s.k, (SELECT max(n) FROM t WHERE t.n = s.n) AS m, count(*) AS c FROM s GROUP BY s.k;
-- refuse_inside_groups: grouping() in WHERE
SELECT k, count(*) AS c FROM s WHERE grouping(k) = 0 GROUP BY ROLLUP(k);
-- refuse_unsorted: EXISTS in ORDER BY
SELECT k, count(*) AS c FROM s GROUP BY k ORDER BY EXISTS (SELECT 1 FROM t), k;
-- refuse_groupings: a correlated subquery, with groupings
SELECT k, EXISTS (SELECT 1 FROM t WHERE t.k = s.k) AS e, count(*) AS c FROM s GROUP BY ROLLUP(k);
-- refuse_windowed_keys: a key in an aggregate OVER, with groupings
SELECT k, n, sum(n) OVER (ORDER BY k) AS r, count(*) AS c FROM s GROUP BY ROLLUP(k, n);
-- refuse_alike_keys, answered: two keys alike
SELECT n + day AS a, day + n AS b, count(*) AS c FROM s GROUP BY ROLLUP(n + day, day + n);
-- refuse_unselected: a key that is not selected, in ORDER BY
SELECT count(*) AS c FROM s GROUP BY ROLLUP(k) ORDER BY k;
-- refuse_in_outer_joins: a column of the outer query, on the optional side
SELECT k FROM t WHERE EXISTS (SELECT 1 FROM t AS a LEFT JOIN (SELECT b.n FROM t AS b WHERE b.k = t.k) AS c ON a.n = c.n);
-- refuse_in_join: a correlated subquery, in ON
SELECT a.k FROM t AS a JOIN t AS b ON a.n = (SELECT max(c.n) FROM t AS c WHERE c.k = a.k);
-- refuse_joins_behind: LATERAL VIEW before a join
SELECT a.k FROM s AS a LATERAL VIEW explode(tags) x AS tag JOIN t AS b ON a.k = b.k;
-- refuse_windows_in_join: a window of time in ON
SELECT a.k FROM s AS a JOIN s AS b ON window(a.ts, '1 hour').start = b.ts;
-- refuse_names_of_names: an output that names another one, in GROUP BY
SELECT upper(k) AS a, concat(a, 'x') AS b, count(*) AS c FROM s GROUP BY a, b;
-- refuse_frame: a frame of ntile()
SELECT k, ntile(2) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t;
-- refuse_bounds: ROWS further than an INT says
SELECT k, sum(n) OVER (ORDER BY k, n ROWS BETWEEN 2147483648 PRECEDING AND CURRENT ROW) AS m FROM t;
-- refuse_partition_by_maps: PARTITION BY a map
SELECT k, sum(n) OVER (PARTITION BY map('a', n)) AS m FROM t;
-- refuse_order_of_operators: operators that Spark reads in another order
SELECT k, n IS NULL = true AS a FROM s;
-- refuse_order_of_operators, answered: a comparison that Spark reads in another order
SELECT k, n = n IN (true) AS a FROM s;
-- refuse_quantified: ANY
SELECT k FROM t WHERE n > ANY (SELECT n FROM t);
