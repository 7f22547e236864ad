"""PagerDuty's own client: ADDRESS KEY; prints what it was answered."""

import json
import sys

import pagerduty

address, key = sys.argv[1:]


def client(key):
    client = pagerduty.EventsApiV2Client(key)
    # It takes an address only if that begins with `https:`.
    client._url = f"http://{address}"
    client.max_network_attempts = 1
    return client


events = client(key)
made = events.trigger("disk is full", "db-1", severity="error", custom_details={"mount": "/var"})
given = events.trigger("too slow", "api-1", dedup_key="api-1/latency", severity="warning")
events.trigger("too slow", "api-1", dedup_key="api-1/latency", severity="critical")
events.acknowledge("api-1/latency")
resolved = events.resolve(made)
events.submit("deployed", source="ci", timestamp="2026-01-31T08:00:00Z")

refused = {}
for name, call in {
    "severity": lambda: events.trigger("x", "y", severity="bad"),
    "key": lambda: client("0" * 32).trigger("x", "y"),
}.items():
    try:
        call()
    except pagerduty.HttpError as error:
        refused[name] = [error.response.status_code, error.response.json()["status"]]

print(json.dumps({"given": given, "same": resolved == made, "made": made, "refused": refused}))
