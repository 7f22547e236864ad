"""Opsgenie's own client: ADDRESS KEY ANNOTATOR; prints what it was answered."""

import json
import sys

import opsgenie_sdk
from opsgenie_sdk.exceptions import OpenApiException

address, key, annotator = sys.argv[1:]


def connected(key):
    settings = opsgenie_sdk.Configuration()
    settings.host = f"http://{address}"
    settings.api_key = {"Authorization": key}
    settings.retry_enabled = False
    return opsgenie_sdk.ApiClient(configuration=settings)


alerts = opsgenie_sdk.AlertApi(api_client=connected(key))
alias = "db/disk 1"
payload = opsgenie_sdk.CreateAlertPayload(
    message="disk is full", alias=alias, priority="P1", description="97 %", tags=["disk"]
)
created = alerts.create_alert(create_alert_payload=payload)
status = alerts.get_request_status(request_id=created.request_id).data
unnamed = alerts.create_alert(
    create_alert_payload=opsgenie_sdk.CreateAlertPayload(message="no alias")
)
made = alerts.get_request_status(request_id=unnamed.request_id).data.alert_id
alerts.acknowledge_alert(
    identifier=alias,
    identifier_type="alias",
    acknowledge_alert_payload=opsgenie_sdk.AcknowledgeAlertPayload(user="ada"),
)
notes = opsgenie_sdk.AddNoteToAlertPayload(note="looking", user="ada")
opsgenie_sdk.AlertApi(api_client=connected(annotator)).add_note(
    identifier=alias, identifier_type="alias", add_note_to_alert_payload=notes
)
closed = alerts.close_alert(
    identifier=made, close_alert_payload=opsgenie_sdk.CloseAlertPayload(note="done")
)
beat = opsgenie_sdk.HeartbeatApi(api_client=connected(key)).ping("nightly")

refused = {}
for name, call in {
    "message": lambda: alerts.create_alert(
        create_alert_payload=opsgenie_sdk.CreateAlertPayload(message=" ")
    ),
    "note": lambda: alerts.add_note(identifier=alias, add_note_to_alert_payload=notes),
    "request": lambda: alerts.get_request_status(request_id="unknown"),
    "key": lambda: opsgenie_sdk.AlertApi(api_client=connected("wrong")).create_alert(
        create_alert_payload=payload
    ),
}.items():
    try:
        call()
    except OpenApiException as error:
        refused[name] = error.status

print(
    json.dumps(
        {
            "result": created.result,
            "success": status.is_success,
            "action": status.action,
            "alert": status.alert_id,
            "made": made,
            "closed": closed.result,
            "beat": beat.result,
            "refused": refused,
        }
    )
)
