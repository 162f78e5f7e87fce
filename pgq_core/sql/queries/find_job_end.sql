-- Whether one job still lives, and if not, how it ended: runs are looked at only when it has left jobs.
SELECT live.found AS is_live, f.outcome, f.result, f.error, d.id AS dead_letter_id, d.last_error, d.resolution, d.replayed_job_id
  FROM (SELECT EXISTS (SELECT FROM {schema}.jobs WHERE id = %(job_id)s) AS found) live
  LEFT JOIN LATERAL (SELECT *
                       FROM {schema}.job_runs
                      WHERE NOT live.found
                        AND job_id = %(job_id)s
                      ORDER BY started_at DESC, id DESC
                      LIMIT 1) f ON true
  LEFT JOIN LATERAL (SELECT *
                       FROM {schema}.dead_letter_jobs
                      WHERE NOT live.found
                        AND original_job_id = %(job_id)s
                      ORDER BY id DESC
                      LIMIT 1) d ON true
