-- Layout 7: contacts, schedules and escalation policies, indexes from the names they refer to, and
-- occurrences by their responses.

CREATE TABLE rule_by_policy (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE contact_by_use (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE schedule_by_use (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE policy_by_use (entry bytea PRIMARY KEY, record bytea NOT NULL);
CREATE TABLE occurrence_by_response (entry bytea PRIMARY KEY, record bytea NOT NULL) WITH (fillfactor = 90);
