"""A gRPC client that shares no code with the service: stubs are made from the .proto files.

Arguments: the folder of the .proto files, a folder for stubs, the address, and the API key.
Prints one line of JSON.
"""

import json
import pathlib
import sys

import google
import grpc
import grpc_tools
from grpc_tools import protoc

protos, stubs, address, key = sys.argv[1:]
files = [
    str(path.relative_to(protos))
    for path in pathlib.Path(protos).rglob("*.proto")
]
well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
outcome = protoc.main(
    [
        "protoc",
        f"-I{protos}",
        f"-I{well_known}",
        f"--python_out={stubs}",
        f"--grpc_python_out={stubs}",
        *files,
    ]
)
assert outcome == 0, "the stubs cannot be made"

# The stubs of google/api stand beside the installed package `google`, which comes first.
sys.path.insert(0, stubs)
google.__path__.append(f"{stubs}/google")

from bellwether.v1 import trigger_pb2, trigger_pb2_grpc  # noqa: E402
from zenoss.cloud import data_receiver_pb2, data_receiver_pb2_grpc  # noqa: E402

channel = grpc.insecure_channel(address)
metadata = (("authorization", f"Bearer {key}"),)

trigger = trigger_pb2.Trigger(name="from python")
clause = trigger.type.event.query.clause
clause.contains.field = "summary"
clause.contains.value = "python"
triggers = trigger_pb2_grpc.TriggerServiceStub(channel)
created = triggers.CreateTrigger(
    trigger_pb2.CreateTriggerRequest(trigger=trigger), metadata=metadata, timeout=20
)
listed = triggers.ListTriggers(trigger_pb2.ListTriggersRequest(), metadata=metadata, timeout=20)
try:
    triggers.GetTrigger(trigger_pb2.GetTriggerRequest(name="unknown"), metadata=metadata, timeout=20)
    refused = None
except grpc.RpcError as error:
    refused = error.code().name

event = data_receiver_pb2.Event(name="snake", summary="python", dimensions={"host": "p1"})
event.metadata_fields.update({"legs": 0})
put = data_receiver_pb2_grpc.DataReceiverServiceStub(channel).PutEvents(
    data_receiver_pb2.Events(events=[event]), metadata=metadata, timeout=20
)

print(
    json.dumps(
        {
            "created": created.trigger.name,
            "listed": [one.name for one in listed.triggers],
            "refused": refused,
            "succeeded": put.succeeded,
        }
    )
)
