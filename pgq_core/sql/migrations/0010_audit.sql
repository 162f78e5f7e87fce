-- Which runs of a queue leave a row in job_runs: all of them, failures and whatever else tells a story, or of the plain successes a
-- sample (a share of them, chosen by a hash of the job's id). Programs of before write every row, whatever stands here.
-- jobs.has_runs: it went back to jobs with a run behind it (retried, lost, released, snoozed), so that its end is written too. NULL: none.
-- compatible_from: 5
ALTER TABLE queues
    ADD COLUMN audit        text NOT NULL DEFAULT 'all',
    ADD COLUMN audit_sample double precision NOT NULL DEFAULT 0.01,
    ADD CONSTRAINT queue_audit CHECK (audit IN ('all', 'failures', 'sample')),
    ADD CONSTRAINT queue_audit_sample_is_a_share CHECK (audit_sample > 0 AND audit_sample <= 1);
ALTER TABLE jobs ADD COLUMN has_runs boolean;
