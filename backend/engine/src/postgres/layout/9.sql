-- Layout 9: the heartbeats that refer to a calendar.

CREATE TABLE heartbeat_by_calendar (entry bytea PRIMARY KEY, record bytea NOT NULL);
