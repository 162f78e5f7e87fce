-- What the HTTP API and the metrics keep: tokens, frozen selections for bulk verbs, and totals that outlive the rows they were counted from.
-- compatible_from: 5

-- Who may call the API. Of a token only a hash is kept: it is shown once, when it is made, and cannot be read again.
CREATE TABLE api_tokens (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text NOT NULL,
    hash          bytea NOT NULL UNIQUE,
    scopes        text[] NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    created_by    text NOT NULL,
    expires_at    timestamptz,
    revoked_at    timestamptz,
    revoked_by    text,
    last_used_at  timestamptz,
    CONSTRAINT api_token_has_a_name CHECK (name <> '' AND length(name) <= 200),
    CONSTRAINT api_token_scopes CHECK (scopes <@ ARRAY['read', 'enqueue', 'operate'] AND cardinality(scopes) BETWEEN 1 AND 3)
);
CREATE UNIQUE INDEX api_tokens_name_idx ON api_tokens (name) WHERE revoked_at IS NULL;

-- Dead letters as a preview showed them. The bulk verb that follows acts on exactly these, whatever died since.
CREATE TABLE selections (
    id            text PRIMARY KEY,
    ids           bigint[] NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    created_by    text NOT NULL,
    expires_at    timestamptz NOT NULL
);
CREATE INDEX selections_expiry_idx ON selections (expires_at);

-- Totals that go on when the rows they came from are deleted, so that a counter never falls.
CREATE TABLE counters (
    name          text PRIMARY KEY,
    value         bigint NOT NULL
);

CREATE FUNCTION workers_keep_late_writes() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    INSERT INTO counters (name, value) VALUES ('late_writes', OLD.late_writes)
    ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION workers_keep_late_writes() FROM PUBLIC;

CREATE TRIGGER workers_keep_late_writes
    AFTER DELETE ON workers FOR EACH ROW WHEN (OLD.late_writes > 0)
    EXECUTE FUNCTION workers_keep_late_writes();
