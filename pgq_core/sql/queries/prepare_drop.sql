-- A drop waits for nobody: behind a long reader it would hold up all that come after it.
SELECT set_config('lock_timeout', %(milliseconds)s::text, false)
