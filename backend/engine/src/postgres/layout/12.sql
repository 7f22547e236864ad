-- Layout 12 adds the table of a kind, without which events would be ingested differently.

-- Nodes of the previous version do not read it. They are removed together with their writers, and stop.
DELETE FROM writer;
DELETE FROM node;
