"""OpenTelemetry's exporter: ADDRESS KEY; logs as an application does, and prints what came of it."""

import json
import logging
import sys

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

address, key = sys.argv[1:]
told = []
logging.getLogger().addHandler(type("Told", (logging.Handler,), {
    "emit": lambda self, record: told.append(record.getMessage()),
})())


def send(compression, key, severity):
    resource = Resource.create({"service.name": "shop", "host.name": "web-1"})
    provider = LoggerProvider(resource=resource)
    exporter = OTLPLogExporter(
        endpoint=f"http://{address}/v1/logs",
        compression=compression,
        headers={"authorization": f"Bearer {key}"},
        timeout=5,
    )
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    logger = provider.get_logger("shop.orders")
    logger.emit(
        LogRecord(
            severity_number=severity,
            severity_text=severity.name,
            body="payment failed",
            attributes={"order": 7},
        )
    )
    provider.force_flush()
    provider.shutdown()


send(Compression.NoCompression, key, SeverityNumber.ERROR)
send(Compression.Gzip, key, SeverityNumber.FATAL)
content = list(told)
send(Compression.Gzip, "wrong", SeverityNumber.FATAL)
print(json.dumps({"content": content, "refused": len(told) > len(content)}))
