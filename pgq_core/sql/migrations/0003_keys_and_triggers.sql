-- Idempotency keys, status that follows from the row, wake-ups: what makes a plain INSERT a first-class producer.
-- compatible_from: 3

-- A key is taken at INSERT and stays taken for a window after its job ended (expires_at; NULL while the job lives,
-- 'infinity' while its dead letter is unresolved).
CREATE TABLE job_keys (
    key           text PRIMARY KEY,
    job_id        bigint NOT NULL,
    queue         text NOT NULL,
    payload_hash  text NOT NULL,
    expires_at    timestamptz
);
CREATE INDEX job_keys_expiry_idx ON job_keys (expires_at) WHERE expires_at IS NOT NULL;

INSERT INTO job_keys (key, job_id, queue, payload_hash)
SELECT idempotency_key, id, queue, payload_fingerprint(queue, payload) FROM jobs WHERE idempotency_key IS NOT NULL;
INSERT INTO job_keys (key, job_id, queue, payload_hash, expires_at)
SELECT DISTINCT ON (idempotency_key) idempotency_key, original_job_id, queue, payload_fingerprint(queue, payload), 'infinity'
  FROM dead_letter_jobs
 WHERE idempotency_key IS NOT NULL AND resolution IS NULL
 ORDER BY idempotency_key, id DESC
ON CONFLICT (key) DO NOTHING;

-- The functions of the keys run with the owner's rights: who may insert a job needs no right on the table of keys.
CREATE FUNCTION jobs_take_key() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
DECLARE
    holder_expires_at timestamptz;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM job_keys WHERE key = OLD.idempotency_key AND job_id = OLD.id AND expires_at IS NULL;
        IF (length(NEW.idempotency_key) BETWEEN 1 AND 500) IS NOT TRUE THEN
            RETURN NEW;
        END IF;
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

-- A key of no allowed length is left to its constraint: one too long for the index of job_keys would fail there, namelessly.
CREATE TRIGGER jobs_take_key
    BEFORE INSERT ON jobs FOR EACH ROW WHEN (length(NEW.idempotency_key) BETWEEN 1 AND 500)
    EXECUTE FUNCTION jobs_take_key();
CREATE TRIGGER jobs_take_changed_key
    BEFORE UPDATE OF idempotency_key ON jobs FOR EACH ROW WHEN (NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key)
    EXECUTE FUNCTION jobs_take_key();

-- Asked once more when the index on jobs has let the row in, for then no other live job has this key: a holder that the
-- table of keys still names has ended since, or is gone without a trace (a table restored, triggers switched off).
CREATE FUNCTION jobs_check_key() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
DECLARE
    holder job_keys;
BEGIN
    SELECT * INTO holder FROM job_keys WHERE key = NEW.idempotency_key;
    IF holder.job_id = NEW.id THEN
        RETURN NULL;
    END IF;
    -- Never waits: who has the key row locked waits for our row at the index.
    UPDATE job_keys
       SET job_id = NEW.id, queue = NEW.queue, payload_hash = payload_fingerprint(NEW.queue, NEW.payload), expires_at = NULL
     WHERE key = (SELECT key FROM job_keys
                   WHERE key = NEW.idempotency_key AND job_id = holder.job_id AND (expires_at IS NULL OR expires_at <= now())
                     FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the idempotency key % was taken by a job that ended while this insert waited: repeat the insert', NEW.idempotency_key
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'jobs_idempotency_key_key', TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_check_key
    AFTER INSERT OR UPDATE OF idempotency_key ON jobs FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL)
    EXECUTE FUNCTION jobs_check_key();

-- Unresolved is said by resolved_at: said as the partial indexes say it, one of them would be read whole without statistics.
CREATE FUNCTION jobs_end_key() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    UPDATE job_keys
       SET expires_at = CASE WHEN EXISTS (SELECT FROM dead_letter_jobs WHERE original_job_id = OLD.id AND resolved_at IS NULL)
                             THEN 'infinity' ELSE now() + key_window() END
     WHERE key = OLD.idempotency_key AND job_id = OLD.id AND expires_at IS NULL;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_end_key
    AFTER DELETE ON jobs FOR EACH ROW WHEN (OLD.idempotency_key IS NOT NULL)
    EXECUTE FUNCTION jobs_end_key();

-- A dead letter that is discarded or deleted starts the window; one that is unresolved again takes its key back, unless
-- another job has it by now. A replayed one has handed its key on: then the row names another job.
CREATE FUNCTION dead_letters_end_key() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    UPDATE job_keys SET expires_at = now() + key_window()
     WHERE key = OLD.idempotency_key AND job_id = OLD.original_job_id AND expires_at = 'infinity';
    RETURN NULL;
END $$;

CREATE FUNCTION dead_letters_hold_key() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    UPDATE job_keys
       SET job_id = NEW.original_job_id, queue = NEW.queue, payload_hash = payload_fingerprint(NEW.queue, NEW.payload), expires_at = 'infinity'
     WHERE key = (SELECT key FROM job_keys WHERE key = NEW.idempotency_key AND expires_at < 'infinity' FOR UPDATE SKIP LOCKED);
    IF NOT FOUND THEN
        INSERT INTO job_keys (key, job_id, queue, payload_hash, expires_at)
        VALUES (NEW.idempotency_key, NEW.original_job_id, NEW.queue, payload_fingerprint(NEW.queue, NEW.payload), 'infinity')
        ON CONFLICT (key) DO NOTHING;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER dead_letters_end_key
    AFTER UPDATE OF resolution ON dead_letter_jobs FOR EACH ROW
    WHEN (OLD.idempotency_key IS NOT NULL AND OLD.resolution IS NULL AND NEW.resolution IS NOT NULL)
    EXECUTE FUNCTION dead_letters_end_key();
CREATE TRIGGER dead_letters_end_key_of_deleted
    AFTER DELETE ON dead_letter_jobs FOR EACH ROW
    WHEN (OLD.idempotency_key IS NOT NULL AND OLD.resolution IS NULL)
    EXECUTE FUNCTION dead_letters_end_key();
CREATE TRIGGER dead_letters_hold_key
    AFTER UPDATE OF resolution ON dead_letter_jobs FOR EACH ROW
    WHEN (NEW.idempotency_key IS NOT NULL AND OLD.resolution IS NOT NULL AND NEW.resolution IS NULL)
    EXECUTE FUNCTION dead_letters_hold_key();

CREATE FUNCTION end_all_keys() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    IF TG_RELID = 'jobs'::regclass THEN
        UPDATE job_keys SET expires_at = now() + key_window() WHERE expires_at IS NULL;
    ELSE
        UPDATE job_keys SET expires_at = now() + key_window() WHERE expires_at = 'infinity';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_end_all_keys AFTER TRUNCATE ON jobs FOR EACH STATEMENT EXECUTE FUNCTION end_all_keys();
CREATE TRIGGER dead_letters_end_all_keys AFTER TRUNCATE ON dead_letter_jobs FOR EACH STATEMENT EXECUTE FUNCTION end_all_keys();

-- status follows from not_before and locked_by. The WHEN clauses fail for the plain row, so the hot path pays nothing.
CREATE FUNCTION jobs_derive_status() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
DECLARE
    is_new_claim boolean := NEW.locked_by IS NOT NULL AND NEW.claim_token IS NOT NULL;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        is_new_claim := OLD.locked_by IS NULL AND NEW.locked_by IS NOT NULL;
        IF is_new_claim AND NEW.claim_token IS NOT DISTINCT FROM OLD.claim_token THEN
            RAISE EXCEPTION 'job % cannot be claimed without a new claim_token: this program was written for an older form of the table; use pgq-core worker', NEW.id
                USING ERRCODE = 'PQ001';
        END IF;
    END IF;
    IF is_new_claim THEN
        NEW.status := 'running';
        NEW.locked_at := coalesce(NEW.locked_at, now());
    ELSIF NEW.status <> 'waiting' OR NEW.waiting_for IS NULL THEN
        NEW.locked_by := NULL;
        NEW.locked_at := NULL;
        NEW.lease_until := NULL;
        NEW.status := CASE WHEN NEW.not_before > now() THEN 'scheduled' ELSE 'pending' END;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER jobs_derive_status_of_new
    BEFORE INSERT ON jobs FOR EACH ROW
    WHEN (NEW.not_before > now() OR NEW.status <> 'pending' OR NEW.locked_by IS NOT NULL)
    EXECUTE FUNCTION jobs_derive_status();

CREATE TRIGGER jobs_derive_status_of_changed
    BEFORE UPDATE ON jobs FOR EACH ROW
    WHEN ((NEW.status = 'running' AND NEW.locked_by IS NULL)
          OR (NEW.status <> 'running' AND NEW.locked_by IS NOT NULL)
          OR (NEW.status = 'pending' AND NEW.not_before > now())
          OR (NEW.status = 'scheduled' AND OLD.status = 'scheduled' AND NEW.not_before IS DISTINCT FROM OLD.not_before)
          OR (OLD.locked_by IS NULL AND NEW.locked_by IS NOT NULL AND NEW.claim_token IS NOT DISTINCT FROM OLD.claim_token))
    EXECUTE FUNCTION jobs_derive_status();

-- Who sleeps and wants to be woken. Unlogged: it is only a hint, polling is the truth.
CREATE UNLOGGED TABLE worker_waits (
    worker_id text PRIMARY KEY,
    waiting   boolean NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200);

CREATE FUNCTION wake_channel() RETURNS text
    LANGUAGE sql STABLE
    SET search_path FROM CURRENT
    AS $$ SELECT 'pgq_' || relnamespace::text FROM pg_class WHERE oid = 'jobs'::regclass $$;

-- Once a statement, and only if somebody waits: under load there is no notification and no commit lock.
CREATE FUNCTION jobs_wake_workers() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    IF EXISTS (SELECT FROM worker_waits WHERE waiting) THEN
        PERFORM pg_notify(wake_channel(), 'jobs');
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_wake_workers AFTER INSERT ON jobs FOR EACH STATEMENT EXECUTE FUNCTION jobs_wake_workers();

-- Nobody needs to call these, and whoever could would hang them on a table of his own and write keys with the owner's rights.
REVOKE ALL ON FUNCTION jobs_take_key(), jobs_check_key(), jobs_end_key(), dead_letters_end_key(), dead_letters_hold_key(),
    end_all_keys(), jobs_wake_workers() FROM PUBLIC;
