-- The tokens of entries in contexts of a session with feedback, and those that the feedback names.
ALTER TABLE session_counters
    ADD COLUMN context_tokens bigint,
    ADD COLUMN used_tokens bigint;
