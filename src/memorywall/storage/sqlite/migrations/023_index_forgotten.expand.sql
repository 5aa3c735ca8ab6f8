-- Finds who was forgotten since what a request stores was said.
CREATE INDEX events_forgotten ON events (tenant, timestamp) WHERE type = 'subject.forgotten';
