-- Layout 11: the deliveries of a thread that precede others.

CREATE TABLE delivery_by_thread (entry bytea PRIMARY KEY, record bytea NOT NULL)
  WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Nodes of the previous version do not write to it. They are removed together with their writers, and stop.
DELETE FROM writer;
DELETE FROM node;
