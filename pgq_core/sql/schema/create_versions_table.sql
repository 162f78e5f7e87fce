-- compatible_from: programs that know at least this version can work on the schema.
CREATE TABLE schema_migrations (
    version         int PRIMARY KEY,
    name            text NOT NULL,
    checksum        text NOT NULL,
    compatible_from int NOT NULL,
    applied_at      timestamptz NOT NULL DEFAULT now()
)
