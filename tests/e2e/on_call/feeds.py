"""Reads an iCalendar file from standard input with three readers, and writes the shifts that each of them finds.

Each line is a JSON object: the reader, and the events by their identity with start, end, summary, sequence and stamp.
"""

import json
import sys
from datetime import timezone

import icalendar
import vobject
from ical.calendar_stream import IcsCalendarStream

text = sys.stdin.read()


def moment(value):
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def events(found):
    return {uid: [moment(start), moment(end), str(summary), int(sequence), moment(stamp)]
            for uid, start, end, summary, sequence, stamp in found}


def of_icalendar():
    calendar = icalendar.Calendar.from_ical(text)
    for event in calendar.walk("VEVENT"):
        yield (str(event["UID"]), event["DTSTART"].dt, event["DTEND"].dt, event["SUMMARY"],
               event["SEQUENCE"], event["DTSTAMP"].dt)


def of_ical():
    calendar = IcsCalendarStream.calendar_from_ics(text)
    for event in calendar.events:
        yield (event.uid, event.dtstart, event.dtend, event.summary, event.sequence, event.dtstamp)


def of_vobject():
    calendar = vobject.readOne(text)
    calendar.validate(raiseException=True)
    for event in calendar.vevent_list:
        yield (event.uid.value, event.dtstart.value, event.dtend.value, event.summary.value,
               event.sequence.value, event.dtstamp.value)


for name, found in [("icalendar", of_icalendar()), ("ical", of_ical()), ("vobject", of_vobject())]:
    print(json.dumps({"reader": name, "events": events(found)}))
