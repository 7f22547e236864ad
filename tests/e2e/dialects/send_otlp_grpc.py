"""A collector's batch over gRPC with gzip: ADDRESS KEY COUNT; prints what came of it."""

import json
import sys

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

address, key, count = sys.argv[1:]


def pair(key, value):
    return KeyValue(key=key, value=AnyValue(string_value=value))


def batch(host):
    resource = Resource(attributes=[pair("service.name", "shop"), pair("host.name", host)])
    records = [
        LogRecord(
            severity_number=17,
            event_name=f"order {number} lost",
            body=AnyValue(string_value=f"order {number} is lost " + "and gone " * 40),
            attributes=[pair(f"attribute {at}", f"value {number} {at}") for at in range(12)],
        )
        for number in range(int(count))
    ]
    scope = ScopeLogs(scope=InstrumentationScope(name="orders"), log_records=records)
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(resource=resource, scope_logs=[scope])]
    )


def export(key, request):
    channel = grpc.insecure_channel(address)
    try:
        answer = LogsServiceStub(channel).Export(
            request,
            metadata=[("authorization", f"Bearer {key}")],
            compression=grpc.Compression.Gzip,
            timeout=60,
        )
        return answer.partial_success.rejected_log_records
    except grpc.RpcError as error:
        return error.code().name
    finally:
        channel.close()


whole = batch("web-1")
print(json.dumps({
    "bytes": whole.ByteSize(),
    "rejected": export(key, whole),
    "refused": export("wrong", batch("web-2")),
}))
