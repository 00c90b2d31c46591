ALTER VIEW traffic ADD CONSTRAINT rate_is_a_share CHECK (error_rate BETWEEN 0 AND 1);
ALTER VIEW traffic ADD CONSTRAINT one_row_each UNIQUE (minute);
ALTER VIEW failures ADD CONSTRAINT known_method CHECK (method IN ('GET', 'POST', 'HEAD', 'OPTIONS')) NOT ENFORCED;
