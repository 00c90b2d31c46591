CREATE TABLE invoice_lines (
  invoice INT, country STRING, quantity INT, unit_price DECIMAL(10, 2), ts TIMESTAMP
) USING kafka OPTIONS (topic 'invoice_lines', format 'json') TBLPROPERTIES ('event_time' = 'ts');

CREATE TABLE countries (country STRING PRIMARY KEY, name STRING)
USING kafka OPTIONS (topic 'countries', format 'json');

CREATE VIEW revenue (hour, country, lines, revenue) AS
SELECT window(ts, '1 hour').start, country, count(*), sum(quantity * unit_price)
FROM invoice_lines
GROUP BY window(ts, '1 hour'), country;

CREATE VIEW by_country TBLPROPERTIES ('on_failure' = 'warn') AS
SELECT country, sum(revenue) AS revenue FROM revenue GROUP BY country;

ALTER VIEW revenue ADD CONSTRAINT hour_is_there CHECK (hour IS NOT NULL);
ALTER VIEW revenue ADD CONSTRAINT known_country CHECK (country IN ('France', 'Japan') OR lines > 10) NOT ENFORCED;
ALTER VIEW revenue ADD CONSTRAINT one_row_each UNIQUE (hour, country);
ALTER VIEW revenue ADD CONSTRAINT country_has_a_name FOREIGN KEY (country) REFERENCES countries (country);
ALTER VIEW revenue ADD CONSTRAINT fresh CHECK (max(hour) >= current_timestamp() - INTERVAL 3 HOURS);
ALTER VIEW revenue ADD CONSTRAINT today CHECK (CAST(hour AS DATE) <= current_date);
ALTER VIEW revenue ADD CONSTRAINT few_lost CHECK (count(*) >= 0.9 * (SELECT count(*) FROM published.revenue));
ALTER VIEW by_country ADD CONSTRAINT positive CHECK (revenue >= 0);
ALTER TABLE countries ADD CONSTRAINT name_is_unique UNIQUE (name);
