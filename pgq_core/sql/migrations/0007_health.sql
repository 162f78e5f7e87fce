-- The age of each inner loop's last good turn, written with the beat of the process it turns in:
-- {"claim": {"age": 0.2, "limit": 30}, ...}, seconds at the time of the beat. NULL: a program that does not say.
-- compatible_from: 5
ALTER TABLE workers ADD COLUMN loops jsonb;
ALTER TABLE supervisors ADD COLUMN loops jsonb;
ALTER TABLE leases
    ADD COLUMN loops      jsonb,
    ADD COLUMN renewed_at timestamptz;
