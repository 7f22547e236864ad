"""Clauses: what the contract says a query means, and queries made at random."""

ABSENT = object()
SEVERITIES = ["default", "debug", "info", "warning", "error", "critical"]
STATUSES = ["default", "open", "suppressed", "closed"]


def number_of(words, value):
    """The number of a severity or status that is given as a word, an enum name or a number."""
    if isinstance(value, (int, float)):
        return int(value)
    word = value.lower().removeprefix("severity_").removeprefix("status_")
    return words.index(word)


def found(field, event, occurrence):
    """The value of a field, or ABSENT."""
    fixed = {
        "name": event.name,
        "type": occurrence.type or ABSENT,
        "summary": occurrence.summary or ABSENT,
        "body": occurrence.body or ABSENT,
        "severity": occurrence.severity,
        "status": occurrence.status,
        "acknowledged": occurrence.acknowledged,
        "count": occurrence.count,
    }
    if field in fixed:
        return fixed[field]
    scope, _, key = field.partition(".")
    if scope == "dimensions":
        return event.dimensions.get(key, ABSENT)
    if scope == "metadata":
        return reached(occurrence.metadata, key)
    if field in event.dimensions:
        return event.dimensions[field]
    return reached(occurrence.metadata, field)


def reached(value, path):
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return ABSENT
        value = value[key]
    return value


def elements(value):
    if value is ABSENT:
        return []
    return value if isinstance(value, list) else [value]


def same(value, wanted, field):
    if field == "severity":
        return value == number_of(SEVERITIES, wanted)
    if field == "status":
        return value == number_of(STATUSES, wanted)
    if isinstance(value, str) and isinstance(wanted, str):
        return value.casefold() == wanted.casefold()
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, (int, float)) and isinstance(wanted, (int, float)):
        return value == wanted
    return False


def ordered(value, bound, field, above):
    if field == "severity":
        bound = number_of(SEVERITIES, bound)
    if field == "status":
        bound = number_of(STATUSES, bound)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return value >= bound if above else value <= bound


def matches(clause, event, occurrence):
    """Whether the clause is true of the occurrence."""
    (kind, body), = clause.items()
    if kind == "and":
        return all(matches(one, event, occurrence) for one in body["clauses"])
    if kind == "or":
        return any(matches(one, event, occurrence) for one in body["clauses"])
    if kind == "not":
        return not matches(body["clause"], event, occurrence)
    field = body["field"]
    values = elements(found(field, event, occurrence))
    if kind == "equals":
        wanted = next(body[name] for name in ("stringVal", "numberVal", "boolVal") if name in body)
        return any(same(value, wanted, field) for value in values)
    if kind == "in":
        return any(same(value, wanted, field) for value in values for wanted in body["values"])
    if kind in ("greaterAndEquals", "lessAndEquals"):
        above = kind == "greaterAndEquals"
        return any(ordered(value, body["value"], field, above) for value in values)
    text = body["value"].casefold()
    texts = [value.casefold() for value in values if isinstance(value, str)]
    return any(
        {"contains": text in one, "startsWith": one.startswith(text), "endsWith": one.endswith(text)}[kind]
        for one in texts
    )


def speaks_of_status(clause):
    (kind, body), = clause.items()
    if kind in ("and", "or"):
        return any(speaks_of_status(one) for one in body["clauses"])
    if kind == "not":
        return speaks_of_status(body["clause"])
    return body["field"] == "status"


def random_clause(chance, depth=0):
    """A clause over what the walk's events have, and sometimes have not."""
    roll = chance.random()
    if depth < 3 and roll < 0.35:
        kind = chance.choice(["and", "or", "not"])
        if kind == "not":
            return {"not": {"clause": random_clause(chance, depth + 1)}}
        return {kind: {"clauses": [random_clause(chance, depth + 1) for _ in range(chance.randint(1, 3))]}}
    severity = chance.choice(["warning", "SEVERITY_ERROR", "critical", 3])
    word = chance.choice(["disk", "DISK", "full", "Straße", "strasse", "net", "over"])
    site = chance.choice(["north", "South", "EAST", "west"])
    return chance.choice(
        [
            lambda: {"greaterAndEquals": {"field": "severity", "value": severity}},
            lambda: {"lessAndEquals": {"field": "severity", "value": severity}},
            lambda: {"equals": {"field": "severity", "stringVal": "error"}},
            lambda: {"contains": {"field": "summary", "value": word}},
            lambda: {"startsWith": {"field": "summary", "value": word}},
            lambda: {"endsWith": {"field": chance.choice(["summary", "body"]), "value": word}},
            lambda: {"equals": {"field": chance.choice(["dimensions.site", "site"]), "stringVal": site}},
            lambda: {"in": {"field": "dimensions.site", "values": [site, "nowhere"]}},
            lambda: {"in": {"field": "severity", "values": ["error", 5]}},
            lambda: {"equals": {"field": "type", "stringVal": chance.choice(["disk", "NET"])}},
            lambda: {"equals": {"field": "acknowledged", "boolVal": chance.random() < 0.5}},
            lambda: {"greaterAndEquals": {"field": "count", "value": chance.randint(1, 5)}},
            lambda: {"equals": {"field": "metadata.level", "numberVal": chance.randint(0, 4)}},
            lambda: {"greaterAndEquals": {"field": "metadata.deep.used", "value": chance.randint(0, 100)}},
            lambda: {"equals": {"field": "metadata.tags", "stringVal": chance.choice(["gold", "Silver"])}},
            lambda: {"equals": {"field": "level", "numberVal": chance.randint(0, 4)}},
            lambda: {"contains": {"field": "dimensions.rack", "value": "r"}},
            lambda: {"equals": {"field": "status", "stringVal": chance.choice(["open", "closed", "suppressed"])}},
            lambda: {"greaterAndEquals": {"field": "status", "value": chance.choice(["open", "STATUS_CLOSED"])}},
            lambda: {"in": {"field": "status", "values": chance.choice([["closed"], [1, 3], ["suppressed", "CLOSED"]])}},
        ]
    )()
