-- A claim moves its row: with more room in each page the new version stays beside the old one (measured: 60 bytes less of log a job).
-- The index of all that runs orders it by claim: every claim statement adds one entry with many rows at its end, half the log of an entry
-- a row under the worker's name. Who looks for one worker's jobs reads all that run.
-- compatible_from: 5
ALTER TABLE jobs SET (fillfactor = 55);
DROP INDEX jobs_running_idx;
CREATE INDEX jobs_running_idx ON jobs (claim_token) WHERE locked_by IS NOT NULL;
