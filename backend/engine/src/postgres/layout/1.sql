-- Layout 1. Do not change its statements: each later layout is in a separate file.

CREATE TABLE meta (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE trigger (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE destination (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE rule (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE client (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE occurrence (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL,
  by_event bytea UNIQUE,
  by_start bytea UNIQUE,
  by_review bytea UNIQUE,
  by_severity bytea UNIQUE
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE delivery (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL,
  by_destination bytea UNIQUE,
  by_rule bytea UNIQUE,
  notified_by_trigger bytea UNIQUE,
  notified_by_destination bytea UNIQUE,
  by_group bytea UNIQUE
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE attempt (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE health (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE receipt (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL,
  by_time bytea UNIQUE
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE revision (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL,
  by_end bytea UNIQUE
);
CREATE TABLE silence (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE counter (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE calendar (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE inhibition (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE audit (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE occurrence_group (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL,
  by_key bytea UNIQUE,
  by_end bytea UNIQUE
);
CREATE TABLE mapping (
  key bytea PRIMARY KEY,
  version bigint NOT NULL,
  value bytea NOT NULL
);
CREATE TABLE occurrence_by_state (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE occurrence_by_due (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE occurrence_by_silence (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE occurrence_by_cause (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE occurrence_by_group (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE rule_by_trigger (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE rule_by_destination (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE rule_by_calendar (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE silence_by_calendar (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE calendar_by_exception (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE client_by_key (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE delivery_by_due (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE delivery_by_state (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE delivery_by_event (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE audit_by_name (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE head (id int PRIMARY KEY, definitions bigint NOT NULL) WITH (fillfactor = 10);
CREATE TABLE log (
  place bigint PRIMARY KEY,
  at timestamptz NOT NULL,
  writer bytea NOT NULL,
  batch bigint NOT NULL,
  version bigint NOT NULL,
  changed bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE writer (id bytea PRIMARY KEY, epoch bigint NOT NULL) WITH (fillfactor = 10);
CREATE TABLE holder (
  id int PRIMARY KEY,
  node bytea NOT NULL,
  name text NOT NULL,
  since timestamptz NOT NULL,
  renewed timestamptz NOT NULL
) WITH (fillfactor = 10);
CREATE SEQUENCE version;
INSERT INTO head (id, definitions) VALUES (1, 0);
INSERT INTO log (place, at, writer, batch, version, changed)
  VALUES (0, clock_timestamp(), '', 0, 0, '');
