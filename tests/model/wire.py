"""A client that speaks gRPC and answers as the one that speaks REST does."""

import pathlib
import tempfile
import urllib.parse

import grpc
import grpc_tools
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_tools import protoc

from outside import Cut, Refused

PROTOS = pathlib.Path(__file__).resolve().parents[2] / "proto"
METHODS = {
    "/v1/data-receiver/events": "zenoss.cloud.DataReceiverService/PutEvents",
    "/v1/event-management/status": "bellwether.v1.EventManagementService/SetStatus",
    "/v1/event-management/annotate": "bellwether.v1.EventManagementService/Annotate",
    "/v1/events:search": "bellwether.v1.EventQueryService/SearchEvents",
    "/v1/events:count": "bellwether.v1.EventQueryService/CountEvents",
    "/v1/events/": "bellwether.v1.EventQueryService/GetEvent",
    "/v1/notification/deliveries": "bellwether.v1.DeliveryService/ListDeliveries",
}
# What a call says whose connection was cut.
CUT = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
}


def described():
    with tempfile.NamedTemporaryFile() as file:
        own = [str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto") if "src" not in path.parts]
        known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
        arguments = [f"-I{PROTOS}", f"-I{known}", "--include_imports", f"--descriptor_set_out={file.name}", *own]
        if protoc.main(["protoc", *arguments]) != 0:
            raise SystemExit("the .proto files do not compile")
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(file.name).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for one in files.file:
        pool.Add(one)
    return pool


POOL = described()


class GrpcClient:
    def __init__(self, service, key):
        self.service, self.metadata = service, (("authorization", f"Bearer {key}"),)
        self.channel, self.port = None, None

    def call(self, _method, path, body=None):
        path, _, query = path.partition("?")
        request = dict(body or {})
        for name, value in urllib.parse.parse_qsl(query):
            if name == "occurrenceIds":
                request.setdefault(name, []).append(value)
            else:
                request[name] = value
        if path.startswith("/v1/events/"):
            request["id"] = path.removeprefix("/v1/events/")
            path = "/v1/events/"
        service, name = METHODS[path].split("/")
        method = POOL.FindServiceByName(service).FindMethodByName(name)
        message = json_format.ParseDict(request, message_factory.GetMessageClass(method.input_type)(), descriptor_pool=POOL)
        if self.channel is None or self.port != self.service.grpc_port:
            self.port = self.service.grpc_port
            self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        call = self.channel.unary_unary(
            f"/{service}/{name}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        try:
            answer = call(message, metadata=self.metadata, timeout=60)
        except grpc.RpcError as error:
            if error.code() in CUT:
                self.channel.close()
                self.channel = None
                raise Cut from error
            raise Refused(0, {"code": error.code().value[0], "message": error.details()}) from error
        return json_format.MessageToDict(answer, descriptor_pool=POOL)
