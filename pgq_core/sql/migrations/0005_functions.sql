-- Functions for callers that know only SQL. The library calls the same ones where an operator acts, so each verb exists once.
-- compatible_from: 5

CREATE FUNCTION enqueue(
    job_type        text,
    data            jsonb DEFAULT '{}',
    queue           text DEFAULT NULL,
    priority        int DEFAULT 0,
    not_before      timestamptz DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    max_attempts    int DEFAULT NULL
) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    announced    job_types;
    wanted_queue text;
    wanted       jsonb := jsonb_build_object('type', enqueue.job_type, 'data', coalesce(enqueue.data, '{}'));
    new_id       bigint;
    holder       job_keys;
BEGIN
    -- What workers announced about the type are defaults; what the caller says wins.
    SELECT * INTO announced FROM job_types t WHERE t.name = enqueue.job_type;
    wanted_queue := coalesce(enqueue.queue, announced.queue, 'default');
    FOR round IN 1 .. 5 LOOP
        BEGIN
            INSERT INTO jobs (queue, payload, priority, not_before, idempotency_key, max_attempts, timeout)
            VALUES (wanted_queue, wanted, coalesce(enqueue.priority, 0), coalesce(enqueue.not_before, now()),
                    enqueue.idempotency_key, coalesce(enqueue.max_attempts, announced.max_attempts, 5), announced.timeout)
            ON CONFLICT (idempotency_key) DO NOTHING
            RETURNING id INTO new_id;
        EXCEPTION WHEN unique_violation THEN
            new_id := NULL;  -- the holder of the key ended while we waited for it
        END;
        IF new_id IS NOT NULL THEN
            RETURN new_id;
        END IF;
        SELECT * INTO holder FROM job_keys k WHERE k.key = enqueue.idempotency_key AND (k.expires_at IS NULL OR k.expires_at > now());
        IF FOUND THEN
            IF holder.payload_hash <> payload_fingerprint(wanted_queue, wanted) THEN
                RAISE EXCEPTION 'idempotency key % belongs to job % with another payload or queue', enqueue.idempotency_key, holder.job_id
                    USING ERRCODE = 'PQ002', DETAIL = holder.job_id::text;
            END IF;
            RETURN holder.job_id;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'idempotency key % changes hands too fast: try again', enqueue.idempotency_key USING ERRCODE = 'serialization_failure';
END $$;

-- The follow-up of one dead letter, or why there is none. A refusal leaves everything as it was, the key included.
CREATE FUNCTION replay_dead_letter(letter dead_letter_jobs, due timestamptz, OUT new_id bigint, OUT refusal text)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
DECLARE
    holder bigint;
    broken text;
BEGIN
    IF letter.resolution IS NOT NULL THEN
        refusal := format('already %s by %s', letter.resolution, coalesce(letter.resolved_by, 'somebody'));
        RETURN;
    END IF;
    IF letter.idempotency_key IS NOT NULL THEN
        SELECT j.id INTO holder FROM jobs j WHERE j.idempotency_key = letter.idempotency_key;
        IF holder IS NOT NULL THEN
            refusal := format('its idempotency key is held by live job %s', holder);
            RETURN;
        END IF;
    END IF;
    -- Hands the key on: the INSERT below takes it like an expired one.
    UPDATE job_keys SET expires_at = '-infinity' WHERE key = letter.idempotency_key AND expires_at IS NOT NULL;
    INSERT INTO jobs (queue, payload, idempotency_key, priority, max_attempts, timeout, trace_context,
                      not_before, origin_job_id, replayed_from)
    VALUES (letter.queue, letter.payload, letter.idempotency_key, letter.priority, letter.max_attempts, letter.timeout,
            letter.trace_context, due, coalesce(letter.origin_job_id, letter.original_job_id), letter.id)
    RETURNING id INTO STRICT new_id;
EXCEPTION
    WHEN unique_violation OR no_data_found THEN
        refusal := 'its idempotency key has just been taken by another job';
    WHEN check_violation THEN
        GET STACKED DIAGNOSTICS broken = CONSTRAINT_NAME;
        refusal := format('jobs does not accept it (%s): edit it first', broken);
END $$;

-- Replays: back to jobs with a fresh budget, both rows pointing at each other. Per row: the new job, or why not.
-- spread: the new jobs become due evenly over this time, so that ten thousand replays do not flood the healthy work.
CREATE FUNCTION replay_dead_letters(ids bigint[], operator text DEFAULT current_user, spread interval DEFAULT '0')
    RETURNS TABLE (dead_letter_id bigint, job_id bigint, refusal text)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    letter  dead_letter_jobs;
    total   int := greatest(coalesce(cardinality(ids), 0), 1);
    nth     int := 0;
BEGIN
    FOR letter IN SELECT * FROM dead_letter_jobs d WHERE d.id = ANY(ids) ORDER BY d.id FOR UPDATE LOOP
        dead_letter_id := letter.id;
        SELECT answer.new_id, answer.refusal INTO job_id, refusal
          FROM replay_dead_letter(letter, now() + coalesce(spread, '0') * nth / total) answer;
        IF refusal IS NULL THEN
            UPDATE dead_letter_jobs
               SET resolution = 'replayed', resolved_at = now(), resolved_by = operator, replayed_job_id = replay_dead_letters.job_id
             WHERE id = letter.id;
            nth := nth + 1;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Discards: resolved for good, softly. The triggers of the keys do the rest.
CREATE FUNCTION discard_dead_letters(ids bigint[], operator text DEFAULT current_user)
    RETURNS TABLE (dead_letter_id bigint, refusal text)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    letter dead_letter_jobs;
BEGIN
    FOR letter IN SELECT * FROM dead_letter_jobs d WHERE d.id = ANY(ids) ORDER BY d.id FOR UPDATE LOOP
        dead_letter_id := letter.id;
        refusal := NULL;
        IF letter.resolution IS NOT NULL THEN
            refusal := format('already %s by %s', letter.resolution, coalesce(letter.resolved_by, 'somebody'));
        ELSE
            UPDATE dead_letter_jobs SET resolution = 'discarded', resolved_at = now(), resolved_by = operator WHERE id = letter.id;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Takes a resolution back: a discard at any time, a replay while its new job has not been claimed.
CREATE FUNCTION undo_resolutions(ids bigint[])
    RETURNS TABLE (dead_letter_id bigint, refusal text)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    letter dead_letter_jobs;
BEGIN
    FOR letter IN SELECT * FROM dead_letter_jobs d WHERE d.id = ANY(ids) ORDER BY d.id FOR UPDATE LOOP
        dead_letter_id := letter.id;
        refusal := NULL;
        IF letter.resolution IS NULL THEN
            refusal := 'it is unresolved already';
        ELSIF letter.resolution = 'replayed' THEN
            DELETE FROM jobs WHERE id = letter.replayed_job_id AND status <> 'running' AND claim_token IS NULL;
            IF NOT FOUND THEN
                refusal := format('job %s has already been claimed', letter.replayed_job_id);
            END IF;
        END IF;
        IF refusal IS NULL THEN
            UPDATE dead_letter_jobs
               SET resolution = NULL, resolved_at = NULL, resolved_by = NULL, replayed_job_id = NULL
             WHERE id = letter.id;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE FUNCTION replay(dead_letter_id bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
DECLARE
    answer record;
BEGIN
    SELECT * INTO answer FROM replay_dead_letters(ARRAY[replay.dead_letter_id]);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no dead letter %', replay.dead_letter_id USING ERRCODE = 'PQ004';
    ELSIF answer.refusal IS NOT NULL THEN
        RAISE EXCEPTION 'dead letter % was not replayed: %', replay.dead_letter_id, answer.refusal USING ERRCODE = 'PQ004';
    END IF;
    INSERT INTO operations (operator, action, target, affected, undo)
    VALUES (current_user, 'replay', 'dead letter ' || replay.dead_letter_id, 1, jsonb_build_object('dead_letter_ids', ARRAY[replay.dead_letter_id]));
    RETURN answer.job_id;
END $$;

CREATE FUNCTION discard(dead_letter_id bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
DECLARE
    answer record;
BEGIN
    SELECT * INTO answer FROM discard_dead_letters(ARRAY[discard.dead_letter_id]);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no dead letter %', discard.dead_letter_id USING ERRCODE = 'PQ004';
    ELSIF answer.refusal IS NOT NULL THEN
        RAISE EXCEPTION 'dead letter % was not discarded: %', discard.dead_letter_id, answer.refusal USING ERRCODE = 'PQ004';
    END IF;
    INSERT INTO operations (operator, action, target, affected, undo)
    VALUES (current_user, 'discard', 'dead letter ' || discard.dead_letter_id, 1, jsonb_build_object('dead_letter_ids', ARRAY[discard.dead_letter_id]));
END $$;

-- The one run row, attempt 0, of a job that ends without having run, and its count in the statistics.
CREATE FUNCTION close_unrun_job(job jobs, outcome text, error text) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
    IF to_regclass('job_runs_' || to_char(today, 'YYYYMMDD')) IS NULL THEN
        PERFORM ensure_run_partitions(today, today);
    END IF;
    INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, queue, job_type, attempt, outcome, error, priority,
                          due_at, enqueued_at, replayed_from)
    VALUES (job.id, 'operator ' || current_user, now(), now(), job.queue, job.job_type, 0, close_unrun_job.outcome,
            close_unrun_job.error, job.priority, job.not_before, job.created_at, job.replayed_from);
    INSERT INTO job_stats AS s (bucket, queue, job_type, slot, cancelled, discarded, expired, durations, waits)
    VALUES (date_bin('5 seconds', now(), timestamptz '2000-01-01 00:00+00'), job.queue, job.job_type, 0,
            (close_unrun_job.outcome = 'cancelled')::int, (close_unrun_job.outcome = 'discarded')::int,
            (close_unrun_job.outcome = 'expired')::int, count_cells('{}'), count_cells('{}'))
    ON CONFLICT (bucket, queue, job_type, slot) DO UPDATE
       SET cancelled = s.cancelled + excluded.cancelled,
           discarded = s.discarded + excluded.discarded,
           expired = s.expired + excluded.expired;
END $$;

-- Cancels: a job that does not run ends here (one run row, attempt 0); a running one is asked to stop.
-- Answers 'cancelled', 'requested' or 'not found'; 'cancelled' is final, 'requested' may still end as a success.
CREATE FUNCTION cancel(job_id bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    job jobs;
BEGIN
    -- Locked first: between a DELETE of a job that does not run and an UPDATE of a running one it could change sides.
    SELECT * INTO job FROM jobs j WHERE j.id = cancel.job_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'not found';
    ELSIF job.status = 'running' THEN
        UPDATE jobs j SET cancel_requested = true WHERE j.id = job.id AND j.status = 'running';
        PERFORM pg_notify(wake_channel(), 'cancel');
        RETURN 'requested';
    END IF;
    DELETE FROM jobs j WHERE j.id = job.id AND j.status <> 'running';
    PERFORM close_unrun_job(job, 'cancelled', 'cancelled by ' || current_user);
    RETURN 'cancelled';
END $$;

CREATE FUNCTION pause(queue text, reason text DEFAULT NULL, operator text DEFAULT current_user) RETURNS void
    LANGUAGE sql
    SET search_path FROM CURRENT
    AS $$
    INSERT INTO queues (name, paused, paused_at, paused_by, pause_reason)
    VALUES (pause.queue, true, now(), pause.operator, pause.reason)
    ON CONFLICT (name) DO UPDATE
       SET paused = true, paused_at = coalesce(queues.paused_at, now()), paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
$$;

CREATE FUNCTION resume(queue text) RETURNS void
    LANGUAGE sql
    SET search_path FROM CURRENT
    AS $$
    UPDATE queues SET paused = false, paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE name = resume.queue;
    SELECT pg_notify(wake_channel(), 'jobs') WHERE EXISTS (SELECT FROM worker_waits WHERE waiting)
$$;
