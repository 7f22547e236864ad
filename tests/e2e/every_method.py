"""Calls methods with grpcio and prints, as a line of JSON each, how the call ended.

Reads from standard input the address, the API key, the descriptors of the details of errors, and
the calls with their messages.
"""

import base64
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

asked = json.load(sys.stdin)
pool = descriptor_pool.DescriptorPool()
described = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(asked["details"]))
for file in described.file:
    pool.Add(file)
Status = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc.Status"))

channel = grpc.insecure_channel(asked["address"])
options = {
    "metadata": (("authorization", f"Bearer {asked['key']}"),),
    "timeout": 60,
}


def make(call):
    """Makes a call; of a stream of responses only the first is read."""
    message = base64.b64decode(call["message"])
    request = iter([message]) if call["clientStreams"] else message
    kind = "stream" if call["clientStreams"] else "unary"
    kind += "_stream" if call["serverStreams"] else "_unary"
    responses = getattr(channel, kind)(call["path"])(request, **options)
    if call["serverStreams"]:
        next(responses, None)
        responses.cancel()


def details(error):
    """The details of an error, as JSON."""
    trailers = dict(error.trailing_metadata() or ())
    status = Status.FromString(trailers.get("grpc-status-details-bin", b""))
    return json_format.MessageToDict(status, descriptor_pool=pool).get("details", [])


def end_of(call):
    """Makes a call, and tells how it ended."""
    ended = {"path": call["path"], "sent": call["sent"], "code": "OK"}
    try:
        make(call)
    except grpc.RpcError as error:
        ended["code"] = error.code().name
        ended["message"] = error.details()
        ended["details"] = details(error)
    return ended


def answered(call):
    """Makes a call, again while too many others of its kind run."""
    for _ in range(100):
        ended = end_of(call)
        if ended["code"] != "UNAVAILABLE":
            break
        time.sleep(0.2)
    return ended


# A watch says nothing for a while.
with ThreadPoolExecutor(max_workers=8) as workers:
    for ended in workers.map(answered, asked["calls"]):
        print(json.dumps(ended))
