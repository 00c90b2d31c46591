-- an index on an unknown column
CREATE VIEW v TBLPROPERTIES ('index' = 'country, hours') AS SELECT country, price FROM events;
-- instead
CREATE VIEW v TBLPROPERTIES ('index' = 'country, price') AS SELECT country, price FROM events;

-- an index without columns
CREATE VIEW v TBLPROPERTIES ('index' = '') AS SELECT country, price FROM events;
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('index' = 'country, placed_at') AS SELECT country, ts AS placed_at FROM events;

-- an index with a comma too many
CREATE VIEW v TBLPROPERTIES ('index' = 'country, ') AS SELECT country, price FROM events;
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('index' = 'country, placed_at') AS SELECT country, ts AS placed_at FROM events;

-- an index on a stream
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('index' = 'a');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json'); CREATE VIEW w TBLPROPERTIES ('index' = 'a') AS SELECT a FROM x;

-- an index on an unknown column of a table
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('index' = 'b');
-- instead
CREATE TABLE x (a INT PRIMARY KEY, b STRING) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('index' = 'a, b');

-- an index on a list
CREATE VIEW v TBLPROPERTIES ('index' = 'tags') AS SELECT tags, price FROM events;
-- instead
CREATE VIEW v TBLPROPERTIES ('index' = 'price') AS SELECT tags, price FROM events;

-- an index on a column computed when the view is read
CREATE VIEW v TBLPROPERTIES ('index' = 'twice') AS SELECT country, 2 * count(*) AS twice FROM events GROUP BY country;
-- instead
CREATE VIEW v TBLPROPERTIES ('index' = 'n') AS SELECT country, count(*) AS n FROM events GROUP BY country;

-- a long name of a source
CREATE TABLE xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (a INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a name twice
CREATE TABLE orders (a INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a name that Postgres folds
CREATE TABLE Xs (a INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE xs (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- no declaration
DROP TABLE events;

-- OR REPLACE
CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM events;
-- instead
CREATE VIEW v AS SELECT count(*) AS n FROM events;

-- a wrong number of names
CREATE VIEW v (a, b) AS SELECT count(*) FROM events;
-- instead
CREATE VIEW v (a) AS SELECT count(*) FROM events;

-- a circle of views
CREATE VIEW v AS SELECT n FROM w; CREATE VIEW w AS SELECT n FROM v;
-- instead
CREATE VIEW v AS SELECT n FROM w; CREATE VIEW w AS SELECT n FROM hourly;

-- several mistakes at once
CREATE TABLE x (a INT, b) USING kafka OPTIONS (topic 'x', format 'json');
CREATE VIEW v AS SELECT contry, count(*) AS n FROM events GROUP BY contry;
CREATE VIEW w AS SELECT n FROM hourlie;
-- instead
CREATE TABLE x (a INT, b INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a long name
CREATE VIEW vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv AS SELECT kind, count(*) AS n FROM events GROUP BY kind;
-- instead
CREATE VIEW vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv AS SELECT kind, count(*) AS n FROM events GROUP BY kind;

-- a function with a schema
CREATE FUNCTION shop.f(x INT) RETURNS INT RETURN x;
-- instead, as printed
CREATE FUNCTION f(x INT) RETURNS INT RETURN x;

-- a temporary function
CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x;
-- instead
CREATE FUNCTION f(x INT) RETURNS INT RETURN x;

-- a call of a catalog's function that needs a name
CREATE FUNCTION size_of(x DECIMAL(10, 2)) RETURNS STRING RETURN CASE WHEN x < 10 THEN 'small' ELSE 'large' END;
CREATE VIEW v AS SELECT country,
  size_of(amount) FROM events;
-- instead, as printed
CREATE FUNCTION size_of(x DECIMAL(10, 2)) RETURNS STRING RETURN CASE WHEN x < 10 THEN 'small' ELSE 'large' END;
CREATE VIEW v AS SELECT country,
  size_of(amount) AS size FROM events;

-- a foreign key of a view that is missing
ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (country) REFERENCES countries (code);
-- instead
ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (country) REFERENCES users (name);

-- a foreign key of another column
ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (countri) REFERENCES users (name);
-- instead, as printed
ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (country) REFERENCES users (name);

-- a unique key of another column
ALTER VIEW hourly ADD CONSTRAINT c UNIQUE (hours);
-- instead, as printed
ALTER VIEW hourly ADD CONSTRAINT c UNIQUE (hour, country);
