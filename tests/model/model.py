"""What the contract says becomes of events, rules and triggers, without a service.

Written from the contract's text and, where that leaves something open, from the topic
`notifications` of the reference.
"""

from dataclasses import dataclass, field

from query import STATUSES, matches, speaks_of_status

OPEN, SUPPRESSED, CLOSED = 1, 2, 3
INFO = 2


@dataclass
class Notified:
    """Who an opening of a rule was decided for."""

    destinations: list
    # Whether they got the closing, and no opening after it.
    got_closing: bool = False
    # Severity and acknowledgement of which they were notified last, while an update may follow.
    last: tuple = ()


@dataclass
class Occurrence:
    number: int
    severity: int = INFO
    status: int = OPEN
    acknowledged: bool = False
    # The severity at the last acknowledgement; 0 without one. Acknowledging another one is a change.
    acknowledged_severity: int = 0
    summary: str = ""
    body: str = ""
    type: str = ""
    metadata: dict = field(default_factory=dict)
    count: int = 0
    # What counts for order: the earliest and the latest that it can be, in milliseconds.
    order: tuple = (0, 0)
    close_reason: str = ""
    began_suppressed: bool = False
    was_open: bool = False
    # What the opening and the newest event stated: the earliest and the latest that it can be.
    start: tuple = (0, 0)
    seen: tuple = (0, 0)
    notes: list = field(default_factory=list)
    # What operators changed, as the history has it.
    changes: list = field(default_factory=list)
    # By the rule's own number, which a rule of the same name does not inherit.
    notified: dict = field(default_factory=dict)
    # What was decided: (rule's name, destination, clear), in order.
    decided: list = field(default_factory=list)


@dataclass
class Event:
    name: str
    dimensions: dict
    occurrences: list = field(default_factory=list)
    id: str = ""

    @property
    def newest(self):
        return self.occurrences[-1]

    @property
    def current(self):
        """The one that is open, if any, else the newest."""
        return next((one for one in self.occurrences if one.status != CLOSED), self.newest)


@dataclass
class Rule:
    number: int
    name: str
    enabled: bool
    triggers: list
    destinations: list
    repeat: bool
    interval: int
    updates: bool
    deleted: bool = False


class Definitions:
    """Triggers and rules in force, and rules that are gone and may still owe a closing."""

    def __init__(self):
        self.triggers = {}
        self.rules = {}
        self.gone = []
        self.rule_count = 0

    def all_rules(self):
        return list(self.rules.values()) + self.gone


def state(occurrence):
    """What an update tells of."""
    return occurrence.severity, occurrence.acknowledged


@dataclass
class Was:
    """An occurrence before a change."""

    status: int
    severity: int
    acknowledged: bool
    acknowledged_severity: int


def was(occurrence):
    return Was(
        occurrence.status, occurrence.severity, occurrence.acknowledged, occurrence.acknowledged_severity
    )


def acknowledge(occurrence, flag):
    occurrence.acknowledged = flag
    occurrence.acknowledged_severity = occurrence.severity if flag else 0


def decide(definitions, event, occurrence, before, by_sender=False):
    """Notes whom a change of the occurrence notifies. `before` is None when it is new."""
    if occurrence.status == OPEN:
        occurrence.was_open = True
    decide_all(definitions, event, occurrence, before, by_sender)
    # What changes during a suppression is news when it is over.
    if occurrence.status != SUPPRESSED:
        for told in occurrence.notified.values():
            told.last = state(occurrence)


def decide_all(definitions, event, occurrence, before, by_sender):
    # An acknowledgement after the closing notifies nobody.
    if before and before.status == CLOSED and occurrence.status == CLOSED and not by_sender:
        return
    for rule in definitions.all_rules():
        decide_for(rule, definitions, event, occurrence, before, by_sender)


def decide_for(rule, definitions, event, occurrence, before, by_sender=False):
    if occurrence.status == SUPPRESSED:
        return

    def send(destinations, clear):
        occurrence.decided.extend((rule.name, destination, clear) for destination in destinations)

    told = occurrence.notified.get(rule.number)
    if told:
        clear = update(rule, told, occurrence, before)
        if clear is not None:
            told.got_closing = occurrence.status == CLOSED
            send(told.destinations, clear)
            # An update takes the place of a repeat that is due with it.
            return
    if rule.deleted or not rule.enabled:
        return
    queries = [definitions.triggers[name] for name in rule.triggers]
    if occurrence.status == CLOSED:
        queries = [query for query in queries if speaks_of_status(query)]
        if not occurrence.was_open and occurrence.began_suppressed:
            return
    if not any(matches(query, event, occurrence) for query in queries):
        return
    # A repeat is news from a sender: operators, ageing and edits open, and repeat nothing.
    if told and not (rule.repeat and rule.interval == 0 and by_sender):
        return
    if not rule.destinations:
        # As if it had not matched: destinations that come later are notified as by a new rule.
        return
    clear = occurrence.status == CLOSED
    send(rule.destinations, clear)
    if not told:
        told = occurrence.notified[rule.number] = Notified([], last=state(occurrence))
    # A message about what is closed is its closing as well, where closings are wanted.
    told.got_closing = clear and rule.updates
    told.destinations += [one for one in rule.destinations if one not in told.destinations]


def update(rule, told, occurrence, before):
    """Whether those who were told hear of this change, and the `clear` of that message."""
    if before is None:
        return None
    if occurrence.status == CLOSED:
        # An edit does not take a closing away, but for one that switches updates off.
        # Who was told the end, and of no beginning since, is told no end again.
        return True if before.status != CLOSED and rule.updates and not told.got_closing else None
    if told.got_closing:
        # Open again, at once or by way of a suppression.
        return False
    changed = told.last != state(occurrence)
    # Beside the closing, a rule that is disabled or deleted tells of nothing.
    return True if changed and rule.updates and rule.enabled and not rule.deleted else None


def notify_open(definitions, rule, event, occurrence):
    """Tells of what is open and was not told of by that rule; how many notifications that is."""
    if occurrence.status != OPEN or rule.number in occurrence.notified or not rule.enabled:
        return 0
    before = len(occurrence.decided)
    decide_for(rule, definitions, event, occurrence, was(occurrence))
    return int(len(occurrence.decided) > before)


def take(definitions, event, sent, order, seen, late):
    """An event that was accepted. `order` is what counts, `seen` what it stated; `late` whether it is
    older than what is stored."""
    closes = sent.get("status") == CLOSED
    occurrence = event.current if event.occurrences else None
    if occurrence is not None and late:
        occurrence.count += 1
        return occurrence
    if occurrence is None or (occurrence.status == CLOSED and not closes):
        number = event.newest.number + 1 if event.occurrences else 1
        occurrence = Occurrence(number)
        event.occurrences.append(occurrence)
        # A name or a type alone serves for both.
        occurrence.type = event.name
        occurrence.began_suppressed = sent.get("status") == SUPPRESSED
        occurrence.start = seen
        before = None
    else:
        before = was(occurrence)
    occurrence.count += 1
    occurrence.order = order
    occurrence.seen = seen
    occurrence.severity = sent.get("severity") or occurrence.severity
    for name in ("summary", "body", "type"):
        setattr(occurrence, name, sent.get(name) or getattr(occurrence, name))
    occurrence.metadata = sent.get("metadata") or occurrence.metadata
    if "acknowledged" in sent:
        acknowledge(occurrence, sent["acknowledged"])
    occurrence.status = sent.get("status") or occurrence.status
    if occurrence.status == CLOSED and (before is None or before.status != CLOSED):
        occurrence.close_reason = "SENDER"
    decide(definitions, event, occurrence, before, by_sender=True)
    return occurrence


def set_status(definitions, event, occurrence, status, acknowledged):
    """What an operator sets; whether it is allowed."""
    reopens = occurrence.status == CLOSED and status in (OPEN, SUPPRESSED)
    # One is open at a time, whichever is the older.
    if reopens and any(one.status != CLOSED for one in event.occurrences):
        return False
    before = was(occurrence)
    if status:
        occurrence.status = status
    if acknowledged is not None:
        acknowledge(occurrence, acknowledged)
    if before == was(occurrence):
        return True
    if before.acknowledged != occurrence.acknowledged:
        occurrence.changes.append(("acknowledged", str(occurrence.acknowledged).lower()))
    if before.status != occurrence.status:
        occurrence.changes.append(("status", STATUSES[occurrence.status]))
        occurrence.close_reason = "OPERATOR" if occurrence.status == CLOSED else ""
    decide(definitions, event, occurrence, before)
    return True
