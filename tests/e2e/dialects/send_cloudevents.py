"""The CloudEvents SDK: ADDRESS KEY; sends one event in each mode and prints the statuses."""

import json
import sys
import urllib.error
import urllib.request
from datetime import datetime, timezone

from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent

address, key = sys.argv[1:]


def send(headers, body, path="/v1/intake/cloudevents", key=key):
    headers = dict(headers)
    if key:
        headers["authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"http://{address}{path}", body, headers, method="POST")
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code


def event(id, kind, **data):
    attributes = {
        "id": id,
        "type": kind,
        "source": "/shop",
        "subject": "order 7",
        "specversion": "1.0",
        "time": datetime.now(timezone.utc),
        "datacontenttype": "application/json",
        "severity": "major",
    }
    return CloudEvent(attributes=attributes, data=data)


opening = event("1", "order.late", message="late by a day")
closing = event("2", "order.late.resolved", message="it came")
statuses = []
for make in [http.to_binary_event, http.to_structured_event, http.to_binary_event]:
    message = make(opening)
    statuses.append(send(message.headers, message.body))
message = http.to_structured_event(closing)
statuses.append(send(message.headers, message.body, f"/v1/intake/cloudevents/{key}", None))
batch = [json.loads(http.to_structured_event(event(id, "batch.part")).body) for id in "345"]
as_batch = {"content-type": "application/cloudevents-batch+json"}
statuses += [send(as_batch, json.dumps(batch).encode()) for _ in range(2)]
refused = [
    send({"content-type": "application/json"}, b"{}"),
    send({"content-type": "application/cloudevents+json"}, b"{}"),
    send(message.headers, message.body, key="wrong"),
]
print(json.dumps({"statuses": statuses, "refused": refused}))
