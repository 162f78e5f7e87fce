-- The tables of the shop, apart from those of the queue.
CREATE SCHEMA shop
    CREATE TABLE outbox (
        job_key    text PRIMARY KEY,
        recipient  text NOT NULL,
        subject    text NOT NULL,
        body       text NOT NULL,
        sent_at    timestamptz NOT NULL DEFAULT now()
    )
    CREATE TABLE invoices (
        number     text PRIMARY KEY,
        customer   int NOT NULL,
        total      numeric(12, 2) NOT NULL,
        issued_at  timestamptz NOT NULL DEFAULT now()
    )
