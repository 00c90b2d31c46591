-- What must hold before readers see a rebuild, and what `lamina check --live` looks at.
ALTER TABLE customers ADD CONSTRAINT lives_somewhere CHECK (city IS NOT NULL);
ALTER TABLE rates ADD CONSTRAINT positive CHECK (rate > 0);
ALTER VIEW in_euro ADD CONSTRAINT known_currency CHECK (currency IN ('USD', 'SEK', 'EUR'));
ALTER VIEW in_euro ADD CONSTRAINT has_a_rate FOREIGN KEY (currency) REFERENCES rates (currency);
ALTER VIEW paid_in_time ADD CONSTRAINT one_row_each UNIQUE (order_id) NOT ENFORCED;
ALTER VIEW by_city ADD CONSTRAINT few_lost
CHECK (sum(customers) >= 0.9 * (SELECT sum(customers) FROM published.by_city));
