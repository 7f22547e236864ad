"""Walks at random against the running service and compares all it answers with the model.

Arguments: the binary and an empty folder. Variables: BELLWETHER_MODEL_OPERATIONS (600),
BELLWETHER_MODEL_SEED (from the clock), BELLWETHER_MODEL_SENDERS (4). Ends with 1 at the first
difference, which it tells with the seed and what was done to the thing it is about. Many operations
are several walks, each with the next seed and a service of its own.

Each sender owns its things, and is an operator too, of its own things alone: what becomes of them
does not depend on the others. Triggers and rules are edited while all senders wait.
"""

import collections
import copy
import json
import os
import random
import shutil
import sys
import threading
import time
import traceback
import urllib.parse

import model
import query
from model import CLOSED, OPEN, SUPPRESSED
from outside import Client, Cut, Receiver, Refused, Service, now_ms

DESTINATIONS = ["alpha", "beta", "gamma"]
TRIGGERS = [f"trigger-{number}" for number in range(6)]
RULES = [f"rule-{number}" for number in range(6)]
WORDS = ["Disk is FULL", "disk", "net is down", "STRASSE gesperrt", "Straße", "it is over", "overflow of disk"]
# The service and this program read one clock, but not at the same moment.
MARGIN_MS = 20
# Operations of each sender between two edits.
ROUND = 12
# Of what was done to a thing, how much a difference tells.
TOLD_MAX = 14
SORTS = ["lastSeen", "startTime", "severity"]
# Operations of one walk: what finds things reads all that the service has.
WALK_MAX = 10_000
# Rounds after which a sender goes on to new things.
LIFE = 6


class Difference(Exception):
    pass


class Thing:
    """An event, the model of it, and what was done to it."""

    def __init__(self, name, dimensions):
        self.event = model.Event(name, dimensions)
        self.done = []


def same(what, found, expected, thing=None):
    if found != expected:
        done = "".join(f"\n    {one}" for one in thing.done[-TOLD_MAX:]) if thing else ""
        raise Difference(f"{what}: {found!r}, not {expected!r}{done}")


class Sender:
    def __init__(self, walk, number):
        self.walk, self.number = walk, number
        self.chance = random.Random(f"{walk.seed}-{number}")
        # Every other one speaks gRPC, where there are stubs for it.
        wire = walk.grpc if walk.grpc and number % 2 else Client
        self.client = wire(walk.service, walk.service.key)
        self.author = f"operator-{number}"
        self.operator = wire(walk.service, walk.service.make_client(self.author, "operator"))
        # The things it owns now, and all that it ever owned.
        self.things, self.every = [], []
        # Those that were told of again by an edit.
        self.touched = set()
        self.made = 0

    def new_things(self):
        for _ in range(4):
            self.made += 1
            dimensions = {"thing": f"{self.number}-{self.made}", "site": self.chance.choice(["north", "SOUTH", "east"])}
            if self.chance.random() < 0.3:
                dimensions["rack"] = self.chance.choice(["R1", "left"])
            self.every.append(Thing(self.chance.choice(["disk", "net"]), dimensions))
        self.things = self.every[-4:]

    def pass_round(self, operations):
        for _ in range(operations):
            if self.walk.failure:
                return
            roll = self.chance.random()
            if roll < 0.60:
                self.send()
            elif roll < 0.78:
                self.set_status()
            elif roll < 0.86:
                self.annotate()
            elif roll < 0.92:
                self.search()
            else:
                self.compare(self.chance.choice(self.things))
            self.walk.count()
        for thing in self.things:
            self.compare(thing)

    # Events.

    def send(self):
        things = self.chance.sample(self.things, self.chance.choice([1, 1, 1, 2, 4]))
        faulty = [self.faulty() for _ in range(self.chance.choice([0, 0, 0, 0, 1, 2]))]
        batch = [(thing, self.stated(thing)) for thing in things] + [(None, one) for one in faulty]
        self.chance.shuffle(batch)
        self.send_batch(batch)

    def retire(self):
        """Closes the things that it goes on from, so that later edits do not tell of ever more."""
        batch = [(thing, {"status": CLOSED}) for thing in self.things if thing.event.occurrences]
        if batch:
            self.send_batch(batch)

    def send_batch(self, batch):
        events = [on_the_wire(thing, stated) if thing else stated for thing, stated in batch]
        detailed = self.chance.random() < 0.5
        begun = now_ms()
        try:
            answer = self.client.call("POST", "/v1/data-receiver/events", {"events": events, "detailedResponse": detailed})
        except Cut:
            self.walk.service_is_back.wait()
            ended = now_ms()
            for thing, stated in batch:
                if thing:
                    self.either(thing, f"cut off: {stated}", lambda thing: self.take(thing, stated, begun, ended))
            return
        ended = now_ms()
        count = sum(thing is not None for thing, _ in batch)
        same("succeeded", answer.get("succeeded", 0), count)
        same("failed", answer.get("failed", 0), len(batch) - count)
        expected = [event for (thing, _), event in zip(batch, events) if thing is None] if detailed else []
        same("failedEvents", len(answer.get("failedEvents", [])), len(expected))
        for thing, stated in batch:
            if thing:
                thing.done.append(f"{begun}..{ended} sent {stated}")
                self.take(thing, stated, begun, ended)

    def stated(self, thing):
        """What a sender says, as the model takes it, with a stamp whose order is certain."""
        chance = self.chance
        stated = {}
        roll = chance.random()
        if roll < 0.45:
            stated["status"] = CLOSED if roll < 0.22 else chance.choice([OPEN, OPEN, SUPPRESSED])
        if chance.random() < 0.6:
            stated["severity"] = chance.randint(1, 5)
        for name in ("summary", "body"):
            if chance.random() < 0.7:
                stated[name] = chance.choice(WORDS)
        if chance.random() < 0.4:
            stated["type"] = chance.choice(["disk", "Net"])
        if chance.random() < 0.4:
            stated["metadata"] = {
                "level": chance.randint(0, 4),
                "deep": {"used": chance.randint(0, 100)},
                "tags": chance.sample(["gold", "silver", "bronze"], chance.randint(0, 2)),
            }
        if chance.random() < 0.15:
            stated["acknowledged"] = chance.random() < 0.5
        roll = chance.random()
        if roll < 0.10:
            stated["stamp"] = now_ms() + chance.randint(60_000, 3_500_000)
            stated["ahead"] = True
        elif roll < 0.30:
            stored = thing.event.current.order if thing.event.occurrences else (0, 0)
            while True:
                stamp = now_ms() - chance.randint(1_000, 3_000_000)
                if chance.random() < 0.3 and stored[0] == stored[1] != 0:
                    stamp = stored[0]
                certain = stored[0] == stored[1] or not stored[0] - MARGIN_MS <= stamp <= stored[1] + MARGIN_MS
                if certain:
                    break
            stated["stamp"] = stamp
        return stated

    def faulty(self):
        return self.chance.choice(
            [
                {"name": "x"},
                {"dimensions": {"thing": "x"}},
                {"name": "x", "dimensions": {"name": "x"}},
                {"name": "x", "dimensions": {"": "x"}},
                {"name": " \t", "dimensions": {"thing": "x"}},
                {"name": "a\nb", "dimensions": {"thing": "x"}},
                {"name": "x", "dimensions": {"a\u0007b": "x"}},
                {"name": "x" * 257, "dimensions": {"thing": "x"}},
                {"name": "x", "type": "x" * 257, "dimensions": {"thing": "x"}},
                {"name": "x", "summary": "x" * 1_025, "dimensions": {"thing": "x"}},
                {"name": "x", "dimensions": {f"d{at}": "x" for at in range(65)}},
                {"name": "x", "dimensions": {"thing": "x"}, "timestamp": str(now_ms() - 86_500_000)},
                {"name": "x", "dimensions": {"thing": "x"}, "timestamp": str(now_ms() + 3_700_000)},
            ]
        )

    def take(self, thing, stated, begun, ended):
        stamp = stated.get("stamp")
        order = (stamp, stamp) if stamp and not stated.get("ahead") else (begun - MARGIN_MS, ended + MARGIN_MS)
        seen = (stamp, stamp) if stamp else order
        late = bool(thing.event.occurrences) and order[1] < thing.event.current.order[0]
        model.take(self.walk.definitions, thing.event, stated, order, seen, late)

    # Operators.

    def set_status(self):
        known = [thing for thing in self.things if thing.event.id]
        items, expected, changes = [], [], []
        for thing in self.chance.sample(known, min(len(known), self.chance.choice([1, 1, 2]))):
            event = thing.event
            occurrence = self.chance.choice([event.newest, event.newest, self.chance.choice(event.occurrences)])
            status = self.chance.choice([None, OPEN, SUPPRESSED, CLOSED])
            acknowledged = self.chance.choice([None, None, True, False])
            item = {"eventId": event.id}
            if occurrence is not event.newest or self.chance.random() < 0.5:
                item["occurrenceId"] = f"{event.id}:{occurrence.number}"
            if status:
                item["status"] = status
            if acknowledged is not None:
                item["acknowledged"] = acknowledged
            items.append(item)
            changes.append((thing, occurrence.number, status, acknowledged))
        if self.chance.random() < 0.2:
            items.append({"eventId": "no-such-event", "acknowledged": True})
            changes.append(None)
        if not items:
            return

        def change(thing, number, status, acknowledged):
            occurrence = thing.event.occurrences[number - 1]
            return model.set_status(self.walk.definitions, thing.event, occurrence, status, acknowledged)

        try:
            answer = self.operator.call("POST", "/v1/event-management/status", {"statuses": items})
        except Cut:
            self.walk.service_is_back.wait()
            for one in filter(None, changes):
                self.either(one[0], f"cut off: set {one[1:]}", lambda thing: change(thing, *one[1:]))
            return
        same("items", len(answer["statusResponses"]), len(items))
        for one, result in zip(changes, answer["statusResponses"]):
            if one:
                one[0].done.append(f"set {one[1:]}: {result}")
            allowed = change(*one) if one else False
            same("success", result["success"], allowed, one[0] if one else None)

    def annotate(self):
        known = [thing for thing in self.things if thing.event.id]
        if not known:
            return
        thing = self.chance.choice(known)
        occurrence = self.chance.choice(thing.event.occurrences)
        text = self.chance.choice(["looking", "fixed", ""])
        item = {"eventId": thing.event.id, "occurrenceId": f"{thing.event.id}:{occurrence.number}", "annotation": text}
        notes, allowed = list(occurrence.notes), bool(text)
        place = None
        if notes and self.chance.random() < 0.5:
            place, allowed = self.chance.randrange(len(notes)), True
            item["annotationId"] = notes[place][0]
        elif self.chance.random() < 0.1:
            item["annotationId"], allowed = "A" * 20, False
        try:
            result = self.operator.call("POST", "/v1/event-management/annotate", {"annotations": [item]})["annotationResponses"][0]
        except Cut:
            self.walk.service_is_back.wait()
            # A note that was cut off has an id that nobody was told: what is stored is taken over.
            occurrence.notes = None
            self.compare(thing)
            return
        thing.done.append(f"annotate {item}: {result}")
        same("success", result["success"], allowed, thing)
        if not allowed:
            return
        if place is None:
            notes.append((result["annotationId"], text))
        elif text:
            notes[place] = (notes[place][0], text)
        else:
            del notes[place]
        occurrence.notes = notes

    # Comparing.

    def look(self, method, path, body=None):
        """Reads: what a kill cuts off is read again."""
        while True:
            try:
                return self.client.call(method, path, body)
            except Cut:
                self.walk.service_is_back.wait()

    def either(self, thing, what, change):
        """After a kill: the change is there as a whole, or not at all."""
        thing.done.append(what)
        without = copy.deepcopy(thing.event)
        change(thing)
        with_change = thing.event
        try:
            self.compare(thing)
        except Difference as difference:
            thing.event = without
            try:
                self.compare(thing)
                thing.done.append("… which did not happen")
            except Difference:
                thing.event = with_change
                raise difference from None

    def compare(self, thing):
        event = thing.event
        found = self.read(thing)
        if not event.occurrences:
            same("stored", found is not None, False, thing)
            return
        same("stored", found is not None, True, thing)
        if event.id:
            same("id", found["id"], event.id, thing)
        event.id = found["id"]
        same("count", int(found["count"]), sum(one.count for one in event.occurrences), thing)
        same("occurrences", len(found["occurrences"]), len(event.occurrences), thing)
        by_number = {one["number"]: one for one in found["occurrences"]}
        for expected in event.occurrences:
            self.compare_occurrence(thing, by_number[expected.number], expected)
        self.compare_decisions(thing)

    def search(self):
        """What a clause finds of the things, and in which order."""
        clause = query.random_clause(self.chance)
        names = [thing.event.dimensions["thing"] for thing in self.things]
        own = {"in": {"field": "dimensions.thing", "values": names}}
        field, order = self.chance.choice(SORTS), self.chance.choice(["ASC", "DESC"])
        asked = {
            "clause": {"and": {"clauses": [own, clause]}},
            "sortBy": [{"byField": {"field": field, "order": f"SORT_ORDER_{order}"}}],
            "pageInput": {"limit": 1000},
        }
        results = self.look("POST", "/v1/events:search", {"query": asked}).get("results", [])
        found = [(one["dimensions"]["thing"], one["occurrences"][0]["number"]) for one in results]
        expected = {
            (thing.event.dimensions["thing"], occurrence.number)
            for thing in self.things
            for occurrence in thing.event.occurrences
            if query.matches(clause, thing.event, occurrence)
        }
        same(f"found by {clause}", sorted(found), sorted(expected))
        keys = [sort_key(field, one["occurrences"][0]) for one in results]
        same(f"the order by {field} {order}", keys, sorted(keys, reverse=order == "DESC"))
        count = self.look("POST", "/v1/events:count", {"query": {"clause": asked["clause"]}})
        same(f"counted by {clause}", count["count"], len(expected))

    def read(self, thing):
        event = thing.event
        number = event.id
        if not number:
            clause = {"equals": {"field": "dimensions.thing", "stringVal": event.dimensions["thing"]}}
            found = self.look("POST", "/v1/events:search", {"query": {"clause": clause}})
            results = found.get("results", [])
            if not results:
                return None
            number = results[0]["id"]
        ids = "".join(f"&occurrenceIds={number}:{at + 1}" for at in range(len(event.occurrences)))
        path = f"/v1/events/{number}"
        try:
            found = self.look("GET", f"{path}?{ids[1:]}")["result"]
        except Refused as refusal:
            same("reading it", refusal.code, None, thing)
        newest = self.look("GET", path)["result"]["occurrences"][0]
        same("newest", newest["number"], len(event.occurrences), thing)
        return found

    def compare_occurrence(self, thing, found, expected):
        def check(name, value):
            same(f"occurrence {expected.number}: {name}", found.get(name), value, thing)

        check("severity", "SEVERITY_" + query.SEVERITIES[expected.severity].upper())
        check("status", "STATUS_" + query.STATUSES[expected.status].upper())
        check("acknowledged", expected.acknowledged)
        check("summary", expected.summary or None)
        check("body", expected.body or None)
        check("type", expected.type or None)
        check("metadataFields", expected.metadata or None)
        check("count", str(expected.count))
        check("closeReason", expected.close_reason or None)
        for name, (first, last) in [("startTime", expected.start), ("lastSeen", expected.seen)]:
            if not first <= int(found[name]) <= last:
                same(f"occurrence {expected.number}: {name}", found[name], (first, last), thing)
        notes = [(one["annotationId"], one["annotation"]) for one in found.get("annotations", [])]
        if expected.notes is None:
            expected.notes = notes
        same(f"occurrence {expected.number}: annotations", notes, expected.notes, thing)
        changes = [
            (one["field"], one["to"].lower().removeprefix("status_"))
            for one in found.get("history", [])
            if one.get("author") == self.author
        ]
        same(f"occurrence {expected.number}: history of {self.author}", changes, expected.changes, thing)

    def compare_decisions(self, thing):
        event = thing.event
        path = f"/v1/notification/deliveries?pageSize=1000&eventId={event.id}"
        found = collections.defaultdict(list)
        for one in reversed(self.look("GET", path).get("deliveries", [])):
            number = int(one["occurrenceId"].rsplit(":", 1)[1])
            found[number, one["ruleName"], one["destinationName"]].append(one["clear"])
            self.walk.expect(one["id"], (one["ruleName"], one["destinationName"], one["occurrenceId"], one["clear"]))
        expected = collections.defaultdict(list)
        for occurrence in event.occurrences:
            for rule, destination, clear in occurrence.decided:
                expected[occurrence.number, rule, destination].append(clear)
        for key in sorted(found.keys() | expected.keys()):
            words = lambda clears: ["closing" if clear else "opening" for clear in clears]
            if found[key] != expected[key]:
                rule = self.walk.definitions.rules.get(key[1])
                clauses = {name: self.walk.definitions.triggers[name] for name in rule.triggers} if rule else {}
                thing.done.append(f"{rule} {clauses}")
            same(f"decided {key}", words(found[key]), words(expected[key]), thing)


def sort_key(field, occurrence):
    """What is alike follows by start and id."""
    first = {
        "severity": query.number_of(query.SEVERITIES, occurrence["severity"]),
        "startTime": 0,
        "lastSeen": int(occurrence["lastSeen"]),
    }[field]
    event, number = occurrence["id"].rsplit(":", 1)
    return first, int(occurrence["startTime"]), event, int(number)


def on_the_wire(thing, stated):
    event = {"name": thing.event.name, "dimensions": thing.event.dimensions}
    names = {"stamp": "timestamp", "metadata": "metadataFields"}
    for name, value in stated.items():
        if name != "ahead":
            event[names.get(name, name)] = value
    return event


class Walk:
    def __init__(self, binary, folder, seed, operations, senders):
        self.seed, self.operations = seed, operations
        self.chance = random.Random(seed)
        self.grpc = wire_of_grpc()
        self.service = Service(binary, folder)
        self.service_is_back = threading.Event()
        self.service_is_back.set()
        self.client = Client(self.service, self.service.key)
        self.receiver = Receiver()
        self.definitions = model.Definitions()
        self.clauses = {}
        self.lock = threading.Lock()
        self.done = 0
        self.kills = 0
        self.failure = None
        self.expected = {}
        self.senders = [Sender(self, number) for number in range(senders)]

    def count(self):
        with self.lock:
            self.done += 1

    def expect(self, delivery, message):
        with self.lock:
            self.expected[delivery] = message

    def run(self):
        for name in DESTINATIONS:
            body = {"name": name, "type": {"webhook": {"url": self.receiver.url(name)}}}
            body["delivery"] = {"maxInFlight": 64}
            self.client.call("POST", "/v1/notification/destinations", body)
        for _ in range(8):
            self.edit()
        rounds = 0
        while self.done < self.operations and not self.failure:
            if rounds % LIFE == 0:
                for sender in self.senders:
                    sender.retire()
                    sender.new_things()
            rounds += 1
            self.pass_round()
            if self.failure:
                break
            for _ in range(self.chance.randint(0, 4)):
                self.edit()
                self.done += 1
            if rounds % LIFE == 0:
                self.compare_received()
        if not self.failure:
            self.compare_received()

    def pass_round(self):
        def guarded(sender):
            try:
                sender.pass_round(ROUND)
            except Difference as difference:
                self.failure = self.failure or str(difference)
            except Exception:
                self.failure = self.failure or traceback.format_exc()

        threads = [threading.Thread(target=guarded, args=(sender,)) for sender in self.senders]
        for thread in threads:
            thread.start()
        if self.chance.random() < 0.06:
            time.sleep(self.chance.random() * 0.2)
            self.kill()
        for thread in threads:
            thread.join()

    def kill(self):
        self.service_is_back.clear()
        self.service.kill()
        self.service.start()
        self.kills += 1
        self.service_is_back.set()

    # Triggers and rules, while nobody sends.

    def edit(self):
        chance = self.chance
        kind = chance.choice(["trigger", "trigger", "rule", "rule", "rule"])
        verb = chance.choice(["create", "create", "update", "update", "delete", "refused"])
        getattr(self, f"{verb}_{kind}")()

    def call(self, method, kind, name=None, body=None, query_=""):
        path = f"/v1/notification/{kind}s"
        if name is not None:
            path += "/" + urllib.parse.quote(name, safe="")
        return self.client.call(method, path + query_, body)

    def refused(self, status, method, kind, name=None, body=None, query_=""):
        try:
            answer = self.call(method, kind, name, body, query_)
        except Refused as refusal:
            same(f"{method} {kind} {name} {body}", refusal.status, status)
            return
        raise Difference(f"{method} {kind} {name} {body}: not refused: {answer}")

    def create_trigger(self):
        name = self.chance.choice(TRIGGERS)
        clause = query.random_clause(self.chance)
        body = {"name": name, "type": {"event": {"query": {"clause": clause}}}}
        if name in self.definitions.triggers:
            self.refused(409, "POST", "trigger", body=body)
            return
        answer = self.call("POST", "trigger", body=body)
        same("the trigger", answer["trigger"]["name"], name)
        self.definitions.triggers[name] = clause

    def update_trigger(self):
        name = self.chance.choice(TRIGGERS)
        clause = query.random_clause(self.chance)
        body = {"name": name, "type": {"event": {"query": {"clause": clause}}}}
        if name not in self.definitions.triggers:
            self.refused(404, "PUT", "trigger", name, body)
            return
        notify = self.chance.random() < 0.3
        answer = self.call("PUT", "trigger", name, body, "?notifyOpen=true" if notify else "")
        self.definitions.triggers[name] = clause
        if notify:
            users = [rule for rule in self.definitions.rules.values() if name in rule.triggers]
            self.notified_of_open(users, answer)

    def delete_trigger(self):
        name = self.chance.choice(TRIGGERS)
        if name not in self.definitions.triggers:
            self.refused(404, "DELETE", "trigger", name)
            return
        users = sorted(rule.name for rule in self.definitions.rules.values() if name in rule.triggers)
        same("ruleNames", self.call("GET", "trigger", name)["trigger"].get("ruleNames", []), users)
        if users:
            self.refused(400, "DELETE", "trigger", name)
        self.call("DELETE", "trigger", name, query_="?force=true" if users else "")
        del self.definitions.triggers[name]
        for rule in self.definitions.rules.values():
            rule.triggers = [one for one in rule.triggers if one != name]

    def refused_trigger(self):
        never = self.chance.choice(
            [
                {"equals": {"field": "severity", "stringVal": "banana"}},
                {"and": {"clauses": []}},
                {"greaterAndEquals": {"field": "count", "value": "many"}},
                {"equals": {"field": "", "stringVal": "x"}},
            ]
        )
        body = {"name": "never", "type": {"event": {"query": {"clause": never}}}}
        self.refused(400, "POST", "trigger", body=body)

    def rule_body(self, name):
        chance = self.chance
        triggers = sorted(self.definitions.triggers)
        repeat = chance.random() < 0.3
        body = {
            "name": name,
            "enabled": chance.random() < 0.85,
            "triggerNames": chance.sample(triggers, min(len(triggers), chance.randint(0, 3))),
            "destinationNames": chance.sample(DESTINATIONS, chance.choice([0, 1, 1, 1, 2, 3])),
            "repeat": repeat,
            "repeatInterval": chance.choice([0, 0, 3600]),
            "sendUpdates": chance.random() < 0.7,
        }
        return body

    def apply_rule(self, rule, body):
        rule.enabled, rule.repeat, rule.updates = body["enabled"], body["repeat"], body["sendUpdates"]
        rule.triggers, rule.destinations = list(body["triggerNames"]), list(body["destinationNames"])
        rule.interval = body["repeatInterval"]

    def create_rule(self):
        name = self.chance.choice(RULES)
        body = self.rule_body(name)
        if name in self.definitions.rules:
            self.refused(409, "POST", "rule", body=body)
            return
        notify = self.chance.random() < 0.3
        answer = self.call("POST", "rule", body=body, query_="?notifyOpen=true" if notify else "")
        same("enabled", answer["rule"]["enabled"], body["enabled"])
        same("repeatInterval", answer["rule"]["repeatInterval"], str(body["repeatInterval"]))
        self.definitions.rule_count += 1
        rule = model.Rule(self.definitions.rule_count, name, False, [], [], False, 0, False)
        self.apply_rule(rule, body)
        self.definitions.rules[name] = rule
        if notify:
            self.notified_of_open([rule], answer)

    def update_rule(self):
        name = self.chance.choice(RULES)
        body = self.rule_body(name)
        if name not in self.definitions.rules:
            self.refused(404, "PUT", "rule", name, body)
            return
        notify = self.chance.random() < 0.3
        answer = self.call("PUT", "rule", name, body, "?notifyOpen=true" if notify else "")
        rule = self.definitions.rules[name]
        self.apply_rule(rule, body)
        if notify:
            self.notified_of_open([rule], answer)

    def notified_of_open(self, rules, answer):
        """All that is open is told by these rules; nobody who was told is told again."""
        count = 0
        for sender in self.senders:
            for thing in sender.every:
                if not thing.event.occurrences:
                    continue
                occurrence = thing.event.current
                told = sum(model.notify_open(self.definitions, rule, thing.event, occurrence) for rule in rules)
                if told:
                    thing.done.append(f"{told} notified of what is open")
                    sender.touched.add(thing)
                count += told
        same("notifyCount", answer.get("notifyCount"), count)

    def delete_rule(self):
        name = self.chance.choice(RULES)
        if name not in self.definitions.rules:
            self.refused(404, "DELETE", "rule", name)
            return
        self.call("DELETE", "rule", name)
        rule = self.definitions.rules.pop(name)
        rule.deleted = True
        self.definitions.gone.append(rule)

    def refused_rule(self):
        body = self.rule_body("never") | self.chance.choice(
            [{"triggerNames": ["no such"]}, {"destinationNames": ["no such"]}, {"repeatInterval": -1}, {"message": "{{#x}}"}]
        )
        self.refused(400, "POST", "rule", body=body)

    # What arrived.

    def compare_received(self):
        for sender in self.senders:
            for thing in sender.touched:
                sender.compare(thing)
            sender.touched.clear()
        expected = self.expected
        patience = time.monotonic() + 60
        while not expected.keys() <= self.receiver.messages.keys():
            if time.monotonic() > patience:
                missing = [expected[one] for one in expected.keys() - self.receiver.messages.keys()]
                rows = self.client.call("GET", "/v1/notification/deliveries?pageSize=1000")["deliveries"]
                states = collections.Counter((row["state"], row.get("lastError", "")) for row in rows)
                self.failure = f"{len(missing)} messages did not arrive, such as {missing[:3]}: {dict(states)}"
                return
            time.sleep(0.02)
        for number, message in expected.items():
            if self.receiver.messages[number][0] != message:
                self.failure = f"delivery {number}: {self.receiver.messages[number][0]}, not {message}"
        # What an edit told of something older is compared now.
        things = {thing.event.id: (sender, thing) for sender in self.senders for thing in sender.every}
        for number in self.receiver.messages.keys() - expected.keys():
            occurrence = self.receiver.messages[number][0][2]
            sender, thing = things[occurrence.rsplit(":", 1)[0]]
            sender.compare(thing)
        unknown = self.receiver.messages.keys() - expected.keys()
        if unknown:
            self.failure = f"{len(unknown)} messages of no delivery, such as {self.receiver.messages[unknown.pop()]}"
        if self.receiver.wrong:
            self.failure = self.receiver.wrong[0]


def wire_of_grpc():
    """The client that speaks gRPC, or None where its modules are missing."""
    try:
        import wire
    except ImportError:
        return None
    return wire.GrpcClient


def walk_one(binary, folder, seed, operations, senders):
    """Walks on a service of its own; what came of it."""
    print(f"BELLWETHER_MODEL_SEED={seed}", flush=True)
    os.mkdir(folder)
    walk = Walk(binary, folder, seed, operations, senders)
    start = time.monotonic()
    try:
        walk.run()
    except Difference as difference:
        walk.failure = str(difference)
    finally:
        walk.service.kill()
    if walk.failure:
        print(f"BELLWETHER_MODEL_SEED={seed}: after {walk.done} operations: {walk.failure}", file=sys.stderr)
        sys.exit(1)
    shutil.rmtree(folder)
    told = {"operations": walk.done, "kills": walk.kills, "grpc": walk.grpc is not None}
    print(json.dumps(told | {"seconds": round(time.monotonic() - start, 1)}), flush=True)
    return walk.done


def main():
    binary, folder = sys.argv[1:]
    seed = int(os.environ.get("BELLWETHER_MODEL_SEED") or time.time_ns() % 1_000_000)
    operations = int(os.environ.get("BELLWETHER_MODEL_OPERATIONS", 600))
    senders = int(os.environ.get("BELLWETHER_MODEL_SENDERS", 4))
    done = 0
    while done < operations:
        part = min(operations - done, WALK_MAX)
        done += walk_one(binary, os.path.join(folder, str(seed)), seed, part, senders)
        seed += 1
    print(f"{done} operations, no difference")


main()
