"""From an empty service to a delivery that arrived, with a client generated from /openapi.json."""

import json
import sys
import time

sys.path.insert(0, sys.argv[4])

from bellwether_client import AuthenticatedClient, models
from bellwether_client.api.deliveries import list_deliveries
from bellwether_client.api.destinations import create_destination, test_destination
from bellwether_client.api.events import search_events
from bellwether_client.api.intake import put_events
from bellwether_client.api.rules import create_rule
from bellwether_client.api.triggers import create_trigger, update_trigger

service, key, receiver = sys.argv[1:4]
client = AuthenticatedClient(base_url=service, token=key)


def given(answer):
    if isinstance(answer, models.Error):
        raise SystemExit(str(answer.to_dict()))
    return answer


trigger = models.Trigger(
    name="disk full",
    type_=models.TriggerTypeEvent(
        event=models.EventTrigger(
            query=models.Query(
                clause=models.ClauseEquals(
                    equals=models.EqualsStringVal(field="type", string_val="disk")
                )
            )
        )
    ),
)
made = given(create_trigger.sync(client=client, body=trigger))
webhook = models.DestinationTypeWebhook(webhook=models.Webhook(url=receiver))
destination = models.Destination(name="on call", type_=webhook)
given(create_destination.sync(client=client, body=destination))
tested = given(
    test_destination.sync(
        client=client, body=models.TestDestinationRequest(name="on call")
    )
)
rule = models.Rule(
    name="disk", enabled=True, trigger_names=["disk full"], destination_names=["on call"]
)
given(create_rule.sync(client=client, body=rule))
event = models.ZenossEvent(
    name="disk full",
    type_="disk",
    dimensions=models.ZenossEventDimensions.from_dict({"host": "db-1"}),
    metadata_fields=models.Struct.from_dict({"inodes": {"free": 12}}),
    severity=models.Severity.SEVERITY_CRITICAL,
)
taken = given(put_events.sync(client=client, body=models.Events(events=[event])))
query = models.EventQuery(filter_="host=db-1")
found = given(
    search_events.sync(client=client, body=models.SearchEventsRequest(query=query))
)
occurrence = found.results[0].occurrences[0]


def delivered():
    for _ in range(200):
        page = given(list_deliveries.sync(client=client, destination_names=["on call"]))
        for delivery in page.deliveries or []:
            if delivery.rule_name == "disk" and delivery.state == "DELIVERED":
                return str(delivery.state)
        time.sleep(0.1)
    return "nothing arrived"


state = delivered()
made.trigger.description = "x" * 1001
refused = update_trigger.sync_detailed("disk full", client=client, body=made.trigger)
violations = [it for detail in refused.parsed.details for it in detail.field_violations or []]

print(
    json.dumps(
        {
            "test": str(tested.outcome),
            "succeeded": taken.succeeded,
            "inodes": occurrence.metadata_fields["inodes"]["free"],
            "delivered": state,
            "refused": int(refused.status_code),
            "field": violations[0].field,
        }
    )
)
