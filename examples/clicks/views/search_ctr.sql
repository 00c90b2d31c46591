CREATE VIEW search_ctr (country, province, city, impressions, clicks, conversions, ctr, conversion_rate)
COMMENT 'click-through and conversion by place, with totals: a place that is NULL stands for all' AS
SELECT country, province, city,
       count_if(kind = 'show'), count_if(kind = 'click'), count_if(kind = 'buy'),
       count_if(kind = 'click') / count_if(kind = 'show'), count_if(kind = 'buy') / count_if(kind = 'click')
FROM events
GROUP BY ROLLUP (country, province, city);
