"""Reads the OpenAPI document from standard input and holds it to the published schema of OpenAPI."""

import json
import sys

from openapi_spec_validator import OpenAPIV31SpecValidator

faults = list(OpenAPIV31SpecValidator(json.load(sys.stdin)).iter_errors())
for fault in faults:
    print(f"{'/'.join(map(str, fault.absolute_path))}: {fault.message}", file=sys.stderr)
sys.exit(1 if faults else 0)
