INSERT INTO jobs (payload) SELECT jsonb_build_object('n', number) FROM generate_series(1, :batch) AS number;
