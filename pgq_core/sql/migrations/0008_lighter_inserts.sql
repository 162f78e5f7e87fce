-- Constraints and a trigger of jobs say the same in fewer words: the server reads and plans their expressions anew with every statement,
-- and evaluates them for every row that is inserted, claimed or rescheduled. What has a text under 'type' is an object; job_type is that text.
-- compatible_from: 5
ALTER TABLE jobs
    DROP CONSTRAINT payload_is_an_object_with_a_type,
    DROP CONSTRAINT job_type_length,
    ADD CONSTRAINT payload_is_an_object_with_a_type CHECK ((jsonb_typeof(payload -> 'type') = 'string' AND job_type <> '') IS TRUE),
    ADD CONSTRAINT job_type_length CHECK (length(job_type) <= 200);

-- As in migration 3, but it looks at the key's length itself: one of no allowed length is left to its constraint.
CREATE OR REPLACE FUNCTION jobs_take_key() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
DECLARE
    holder_expires_at timestamptz;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM job_keys WHERE key = OLD.idempotency_key AND job_id = OLD.id AND expires_at IS NULL;
    END IF;
    IF (length(NEW.idempotency_key) BETWEEN 1 AND 500) IS NOT TRUE THEN
        RETURN NEW;
    END IF;
    INSERT INTO job_keys (key, job_id, queue, payload_hash)
    VALUES (NEW.idempotency_key, NEW.id, NEW.queue, payload_fingerprint(NEW.queue, NEW.payload))
    ON CONFLICT (key) DO NOTHING;
    IF FOUND THEN
        RETURN NEW;
    END IF;
    SELECT expires_at INTO holder_expires_at FROM job_keys WHERE key = NEW.idempotency_key;
    IF holder_expires_at IS NULL THEN
        RETURN NEW;   -- its job lives: the unique index on jobs decides (23505, or ON CONFLICT DO NOTHING)
    ELSIF holder_expires_at > now() THEN
        IF TG_OP = 'INSERT' THEN
            RETURN NULL;  -- its job has ended and the window is open: nothing is inserted, nothing raised
        END IF;
        RAISE EXCEPTION 'the idempotency key % stays taken until %', NEW.idempotency_key, holder_expires_at
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_idempotency_key_key', TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA;
    END IF;
    -- Expired: taken over by an UPDATE of its own, since ON CONFLICT DO UPDATE would lock the key row of a live job. When
    -- somebody else was faster, the row that was waited for stays locked although it no longer matches, and it is the key
    -- of a live job by now: the exception gives that lock back.
    BEGIN
        UPDATE job_keys
           SET job_id = NEW.id, queue = NEW.queue, payload_hash = payload_fingerprint(NEW.queue, NEW.payload), expires_at = NULL
         WHERE key = NEW.idempotency_key AND expires_at <= now();
        IF NOT FOUND THEN
            RAISE SQLSTATE 'PQ000';
        END IF;
    EXCEPTION WHEN SQLSTATE 'PQ000' THEN
        NULL;  -- the index decides
    END;
    RETURN NEW;
END $$;

DROP TRIGGER jobs_take_key ON jobs;
CREATE TRIGGER jobs_take_key
    BEFORE INSERT ON jobs FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL)
    EXECUTE FUNCTION jobs_take_key();
