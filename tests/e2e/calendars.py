"""Reads rules from standard input, a JSON object a line, and writes when each begins, as dateutil finds."""

import json
import sys
from datetime import datetime

from dateutil.rrule import rrulestr

for line in sys.stdin:
    asked = json.loads(line)
    moment = lambda name: datetime.fromisoformat(asked[name])
    rule = rrulestr(asked["rrule"], dtstart=moment("dtstart"))
    found = rule.between(moment("start"), moment("end"), inc=True)
    print(json.dumps([it.isoformat() for it in found]))
