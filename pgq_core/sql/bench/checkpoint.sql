-- So that no measurement pays for what was written before it.
CHECKPOINT
