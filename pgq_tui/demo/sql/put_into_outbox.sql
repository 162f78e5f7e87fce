-- In the transaction of the job: a job that is run twice leaves one mail.
INSERT INTO shop.outbox (job_key, recipient, subject, body)
VALUES (%(job_key)s, %(recipient)s, %(subject)s, %(body)s)
ON CONFLICT (job_key) DO NOTHING
