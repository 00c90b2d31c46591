CREATE VIEW by_city (city, customers)
COMMENT 'how many customers live in each city' AS
SELECT city, count(*) FROM customers GROUP BY city;
