-- Layout 2: budgets of destinations, and the deliveries in a digest.

CREATE TABLE budget (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE delivery ADD COLUMN by_digest bytea UNIQUE;
