//! Who is notified: what opens, what updates, who is owed a closing.
//!
//! A decision is in the commit of the change that causes it: what a step decides can be read as soon
//! as the step is answered.

use bellwether_tests::{
    eventually::eventually,
    receiver::{Received, Receiver},
    wire::Wire,
    world::World,
};
use serde_json::{Value, json};

use super::{event, in_seconds, send, set_status, stored, with};

const MINUTE: i64 = 60;
const CREATE_DESTINATION: &str = "DestinationService/CreateDestination";
const CREATE_TRIGGER: &str = "TriggerService/CreateTrigger";
const UPDATE_TRIGGER: &str = "TriggerService/UpdateTrigger";
const DELETE_TRIGGER: &str = "TriggerService/DeleteTrigger";
const CREATE_RULE: &str = "RuleService/CreateRule";
const UPDATE_RULE: &str = "RuleService/UpdateRule";
const DELETE_RULE: &str = "RuleService/DeleteRule";

/// What happens, and what is decided by it: `opening` and `update` (whose messages say `clear`),
/// one a delivery.
type Steps = Vec<(Step, &'static str)>;

enum Step {
    /// The sender's event with these members.
    Send(Value),
    /// The operator sets this.
    Set(Value),
    /// The rule with these members, as it is from now on.
    Rule(Value),
    /// Like [`Step::Rule`], and what is open is to be told.
    RuleForOpen(Value),
    /// The trigger has this clause from now on.
    Trigger(Value),
    /// Like [`Step::Trigger`], and what is open is to be told.
    TriggerForOpen(Value),
    /// The rule is deleted.
    DeleteRule,
    /// The trigger is deleted, and taken out of the rule.
    DeleteTrigger,
}

struct Case {
    name: &'static str,
    /// Over a rule that is enabled and sends no updates.
    rule: Value,
    /// Beside what names the host; absent: nothing.
    clause: Option<Value>,
    steps: Steps,
}

fn case(name: &'static str, rule: Value, clause: Option<Value>, steps: Steps) -> Case {
    Case {
        name,
        rule,
        clause,
        steps,
    }
}

fn sent(members: Value) -> Step {
    Step::Send(members)
}

fn closed() -> Step {
    Step::Send(json!({"status": "STATUS_CLOSED"}))
}

fn set(status: &str) -> Step {
    Step::Set(json!({"status": status}))
}

fn acknowledged(acknowledged: bool) -> Step {
    Step::Set(json!({"acknowledged": acknowledged}))
}

fn updates() -> Value {
    json!({"sendUpdates": true})
}

fn compares(field: &str, value: &str) -> Value {
    json!({"equals": {"field": field, "stringVal": value}})
}

fn plain() -> Step {
    sent(json!({}))
}

/// One case on one wire, with definitions of its own.
struct Play {
    wire: Wire,
    host: String,
    trigger: Value,
    rule: Value,
    /// Deliveries that earlier steps decided.
    before: usize,
}

impl Play {
    async fn begin(wire: &Wire, hook: &str, number: usize, case: &Case) -> Self {
        let host = format!("{}-{number}", wire.name());
        let destination = json!({"name": host, "type": {"webhook": {"url": hook}}});
        wire.ok(CREATE_DESTINATION, &json!({"destination": destination}))
            .await;
        let rule = json!({
            "name": host,
            "enabled": true,
            "triggerNames": [host],
            "destinationNames": [host],
        });
        let mut play = Self {
            wire: wire.clone(),
            trigger: Value::Null,
            rule: with(&rule, &case.rule),
            host,
            before: 0,
        };
        play.trigger = play.trigger_of(case.clause.as_ref());
        let trigger = json!({"trigger": play.trigger});
        wire.ok(CREATE_TRIGGER, &trigger).await;
        wire.ok(CREATE_RULE, &json!({"rule": play.rule})).await;
        play
    }

    fn trigger_of(&self, clause: Option<&Value>) -> Value {
        let mut clauses = vec![compares("dimensions.host", &self.host)];
        clauses.extend(clause.cloned());
        json!({
            "name": self.host,
            "type": {"event": {"query": {"clause": {"and": {"clauses": clauses}}}}},
        })
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Send(members) => {
                let event = with(&event(&self.host), members);
                send(&self.wire, &[event]).await;
            }
            Step::Set(item) => {
                let answer = set_status(&self.wire, &self.host, item).await;
                assert_eq!(answer["success"], true, "{}: {answer}", self.host);
            }
            Step::Rule(members) | Step::RuleForOpen(members) => {
                self.rule = with(&self.rule, members);
                let notify = matches!(step, Step::RuleForOpen(_));
                self.update(UPDATE_RULE, "rule", &self.rule, notify).await;
            }
            Step::Trigger(clause) | Step::TriggerForOpen(clause) => {
                self.trigger = self.trigger_of(Some(clause));
                let notify = matches!(step, Step::TriggerForOpen(_));
                self.update(UPDATE_TRIGGER, "trigger", &self.trigger, notify)
                    .await;
            }
            Step::DeleteRule => {
                let request = json!({"name": self.host});
                self.wire.ok(DELETE_RULE, &request).await;
            }
            Step::DeleteTrigger => {
                let request = json!({"name": self.host, "force": true});
                self.wire.ok(DELETE_TRIGGER, &request).await;
            }
        }
    }

    /// Updates a definition; with `notify` what is open is counted first, and then told.
    async fn update(&self, method: &str, kind: &str, definition: &Value, notify: bool) {
        if !notify {
            self.wire.ok(method, &json!({kind: definition})).await;
            return;
        }
        let request = json!({kind: definition, "notifyOpen": true});
        let asked = with(&request, &json!({"validateOnly": true}));
        let counted = self.wire.ok(method, &asked).await;
        let before = self.decided().await.len();
        assert_eq!(before, self.before, "asking tells nobody: {counted}");
        self.wire.ok(method, &request).await;
        let told = self.decided().await.len() - before;
        assert_eq!(counted["notifyCount"], told, "{}: {counted}", self.host);
    }

    /// All deliveries about the event, oldest first.
    async fn decided(&self) -> Vec<&'static str> {
        let found = json!({"query": {"clause": compares("dimensions.host", &self.host)}});
        let found = self.wire.ok(super::SEARCH, &found).await;
        let Some(id) = found["results"][0]["id"].as_str() else {
            return Vec::new();
        };
        let request = json!({"eventId": id, "pageSize": 1_000});
        let list = self
            .wire
            .ok("DeliveryService/ListDeliveries", &request)
            .await;
        let deliveries = list["deliveries"].as_array().cloned().unwrap_or_default();
        let kind = |delivery: &Value| match delivery["clear"].as_bool() {
            Some(false) => "opening",
            Some(true) => "update",
            None => panic!("`clear` is always answered: {delivery}"),
        };
        deliveries.iter().rev().map(kind).collect()
    }
}

async fn hold(cases: impl Fn() -> Vec<Case>) {
    let world = World::start();
    let receiver = Receiver::start().await;
    let mut wrong = Vec::new();
    for wire in world.wires() {
        for (number, case) in cases().into_iter().enumerate() {
            let mut play = Play::begin(&wire, &receiver.url("/"), number, &case).await;
            for (at, (step, expected)) in case.steps.iter().enumerate() {
                play.take(step).await;
                let decided = play.decided().await;
                let news = decided[play.before..].join(" ");
                if news != *expected {
                    let step = at + 1;
                    let name = case.name;
                    let wire = wire.name();
                    wrong.push(format!(
                        "{wire}, {name}, step {step}: {news:?}, not {expected:?}"
                    ));
                    break;
                }
                play.before = decided.len();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn openings_are_for_what_is_open() {
    hold(|| {
        let late = || sent(json!({"timestamp": in_seconds(-10 * MINUTE)}));
        let by_status = || Some(compares("status", "closed"));
        let not_suppressed = json!({"not": {"clause": compares("status", "suppressed")}});
        let either = json!({"or": {"clauses": [
            compares("status", "open"), compares("summary", "disk is full"),
        ]}});
        vec![
            case(
                "an OK heartbeat",
                updates(),
                None,
                vec![(closed(), ""), (closed(), ""), (closed(), "")],
            ),
            case(
                "a close repeated",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (closed(), "update"),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "a close repeated, with every match told",
                json!({"repeat": true, "repeatInterval": 0}),
                None,
                vec![
                    (plain(), "opening"),
                    (plain(), "opening"),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "a late event after the closing",
                updates(),
                None,
                vec![(plain(), "opening"), (closed(), "update"), (late(), "")],
            ),
            case(
                "a late event after a closing of something never seen",
                updates(),
                None,
                vec![(closed(), ""), (late(), ""), (plain(), "opening")],
            ),
            case(
                "a match that begins with the close",
                json!({}),
                Some(compares("summary", "over")),
                vec![
                    (plain(), ""),
                    (
                        sent(json!({"status": "STATUS_CLOSED", "summary": "over"})),
                        "",
                    ),
                ],
            ),
            case(
                "a query that speaks of status matches what is closed",
                json!({}),
                by_status(),
                vec![
                    (plain(), ""),
                    (closed(), "update"),
                    (closed(), ""),
                    (plain(), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "and what is closed from the start",
                json!({}),
                by_status(),
                vec![(closed(), "update"), (closed(), "")],
            ),
            case(
                "it may speak of status inside a `not`",
                json!({}),
                Some(not_suppressed),
                vec![(closed(), "update"), (closed(), "")],
            ),
            case(
                "and beside other clauses",
                json!({}),
                Some(either),
                vec![(closed(), "update"), (closed(), "")],
            ),
            case(
                "an operator's close opens nothing",
                json!({}),
                Some(compares("acknowledged", "true")),
                vec![
                    (plain(), ""),
                    (
                        Step::Set(json!({"acknowledged": true, "status": "STATUS_CLOSED"})),
                        "",
                    ),
                ],
            ),
            case(
                "what was told stays once per occurrence",
                json!({}),
                Some(not_closed_or_all()),
                vec![(plain(), "opening"), (closed(), ""), (closed(), "")],
            ),
        ]
    })
    .await;
}

/// True of everything, and speaks of status.
fn not_closed_or_all() -> Value {
    json!({"greaterAndEquals": {"field": "status", "value": "open"}})
}

#[tokio::test]
async fn matches_are_evaluated_at_every_change_and_never_by_time_alone() {
    hold(|| {
        let late = || sent(json!({"timestamp": in_seconds(-10 * MINUTE)}));
        let counted = json!({"greaterAndEquals": {"field": "count", "value": 2}});
        let acked = || Some(json!({"equals": {"field": "acknowledged", "boolVal": true}}));
        let any = || compares("name", "disk-full");
        let none = || Some(compares("name", "other"));
        let off = || json!({"enabled": false});
        let on = || json!({"enabled": true});
        vec![
            case(
                "an operator acknowledges",
                json!({}),
                acked(),
                vec![
                    (plain(), ""),
                    (acknowledged(true), "opening"),
                    (plain(), ""),
                ],
            ),
            case(
                "a sender acknowledges",
                json!({}),
                acked(),
                vec![
                    (plain(), ""),
                    (sent(json!({"acknowledged": true})), "opening"),
                ],
            ),
            case(
                "an operator lifts a suppression",
                json!({}),
                None,
                vec![
                    (sent(json!({"status": "STATUS_SUPPRESSED"})), ""),
                    (set("STATUS_OPEN"), "opening"),
                ],
            ),
            case(
                "a sender lifts a suppression",
                json!({}),
                None,
                vec![
                    (sent(json!({"status": "STATUS_SUPPRESSED"})), ""),
                    (plain(), ""),
                    (sent(json!({"status": "STATUS_OPEN"})), "opening"),
                ],
            ),
            case(
                "a late event only counts",
                json!({}),
                Some(counted),
                vec![(plain(), ""), (late(), ""), (plain(), "opening")],
            ),
            case(
                "a late event is no repeat",
                json!({"repeat": true, "repeatInterval": 0}),
                None,
                vec![(plain(), "opening"), (late(), ""), (plain(), "opening")],
            ),
            case(
                "a rule that is enabled tells at the next change",
                off(),
                None,
                vec![
                    (plain(), ""),
                    (Step::Rule(on()), ""),
                    (late(), ""),
                    (plain(), "opening"),
                ],
            ),
            case(
                "the next change may be an operator's",
                off(),
                None,
                vec![
                    (plain(), ""),
                    (Step::Rule(on()), ""),
                    (acknowledged(true), "opening"),
                ],
            ),
            case(
                "a trigger that is edited tells at the next change",
                json!({}),
                none(),
                vec![
                    (plain(), ""),
                    (Step::Trigger(any()), ""),
                    (plain(), "opening"),
                ],
            ),
            case(
                "and of nothing that is closed by then",
                json!({}),
                none(),
                vec![(plain(), ""), (Step::Trigger(any()), ""), (closed(), "")],
            ),
            case(
                "an enabled rule tells of what is open when that is asked for",
                off(),
                None,
                vec![
                    (plain(), ""),
                    (Step::RuleForOpen(on()), "opening"),
                    (plain(), ""),
                ],
            ),
            case(
                "so does an edited trigger",
                json!({}),
                none(),
                vec![
                    (plain(), ""),
                    (Step::TriggerForOpen(any()), "opening"),
                    (plain(), ""),
                ],
            ),
            case(
                "what is closed is not told of then",
                off(),
                None,
                vec![(plain(), ""), (closed(), ""), (Step::RuleForOpen(on()), "")],
            ),
            case(
                "nor what is suppressed",
                off(),
                None,
                vec![
                    (sent(json!({"status": "STATUS_SUPPRESSED"})), ""),
                    (Step::RuleForOpen(on()), ""),
                ],
            ),
            case(
                "nor what was told",
                json!({}),
                None,
                vec![(plain(), "opening"), (Step::RuleForOpen(on()), "")],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn ageing_is_a_change_like_any_other() {
    let mut world = World::with_settings("[lifetime]\nerror_age_max = \"1ms\"\n");
    let receiver = Receiver::start().await;
    let suppressed = || sent(json!({"status": "STATUS_SUPPRESSED"}));
    let by_status = || Some(compares("status", "closed"));
    let cases = || {
        [
            (
                case("a closing that is owed", updates(), None, Vec::new()),
                plain(),
                "opening update",
            ),
            (
                case(
                    "a query that speaks of status",
                    json!({}),
                    by_status(),
                    Vec::new(),
                ),
                plain(),
                "update",
            ),
            (
                case("nothing is opened by it", json!({}), None, Vec::new()),
                suppressed(),
                "",
            ),
            (
                case("suppressed all along", json!({}), by_status(), Vec::new()),
                suppressed(),
                "",
            ),
        ]
    };
    let mut plays = Vec::new();
    for wire in world.wires() {
        for (number, (case, first, expected)) in cases().into_iter().enumerate() {
            let mut play = Play::begin(&wire, &receiver.url("/"), number, &case).await;
            play.take(&first).await;
            plays.push((case.name, play, expected));
        }
    }
    // A service looks at what is due when it starts, and then once a minute.
    world.terminate();
    world.start_again();
    for (name, mut play, expected) in plays {
        let wires = world.wires();
        let mut wires = wires.iter();
        let same = wires.find(|wire| wire.name() == play.wire.name());
        play.wire = same.expect("both wires").clone();
        eventually("the occurrence to age out", async || {
            let event = stored(&play.wire, &play.host).await;
            (event["occurrences"][0]["closeReason"] == "AGED").then_some(())
        })
        .await;
        assert_eq!(
            play.decided().await.join(" "),
            expected,
            "{}: {name}",
            play.wire.name()
        );
    }
}

#[tokio::test]
async fn who_got_the_closing_gets_the_reopening_and_is_owed_the_next_closing() {
    hold(|| {
        let told = |rule: Value, between: Vec<(Step, &'static str)>, reopened, closed_again| {
            let mut steps = vec![(plain(), "opening"), (closed(), "update")];
            steps.extend(between);
            steps.push((set("STATUS_OPEN"), reopened));
            steps.push((closed(), closed_again));
            (rule, steps)
        };
        let cases = [
            (
                "an operator reopens",
                told(updates(), vec![], "opening", "update"),
            ),
            (
                "though no trigger matches any more",
                told(
                    updates(),
                    vec![(Step::Trigger(compares("name", "other")), "")],
                    "opening",
                    "update",
                ),
            ),
            (
                "though the rule has lost its destinations",
                told(
                    updates(),
                    vec![(Step::Rule(json!({"destinationNames": []})), "")],
                    "opening",
                    "update",
                ),
            ),
            (
                "though the trigger is gone",
                told(
                    updates(),
                    vec![(Step::DeleteTrigger, "")],
                    "opening",
                    "update",
                ),
            ),
            (
                "each time",
                told(
                    updates(),
                    vec![
                        (set("STATUS_OPEN"), "opening"),
                        (set("STATUS_CLOSED"), "update"),
                    ],
                    "opening",
                    "update",
                ),
            ),
        ];
        let mut all: Vec<_> = cases
            .into_iter()
            .map(|(name, (rule, steps))| case(name, rule, None, steps))
            .collect();
        all.push(case(
            "who got no closing gets no reopening",
            json!({}),
            None,
            vec![
                (plain(), "opening"),
                (closed(), ""),
                (set("STATUS_OPEN"), ""),
                (closed(), ""),
            ],
        ));
        all.push(case(
            "the operator's own close",
            updates(),
            None,
            vec![
                (plain(), "opening"),
                (set("STATUS_CLOSED"), "update"),
                (set("STATUS_OPEN"), "opening"),
                (set("STATUS_CLOSED"), "update"),
            ],
        ));
        all
    })
    .await;
}

#[tokio::test]
async fn a_closing_is_owed_to_whoever_an_opening_was_decided_for() {
    hold(|| {
        let switch = |on: bool| Step::Rule(json!({"sendUpdates": on}));
        vec![
            case(
                "switched on later",
                json!({}),
                None,
                vec![
                    (plain(), "opening"),
                    (switch(true), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "switched off later",
                updates(),
                None,
                vec![(plain(), "opening"), (switch(false), ""), (closed(), "")],
            ),
            case(
                "off and on again",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (switch(false), ""),
                    (switch(true), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "deleted while it was on",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::DeleteRule, ""),
                    (closed(), "update"),
                    (closed(), ""),
                ],
            ),
            case(
                "deleted while it was off",
                json!({}),
                None,
                vec![(plain(), "opening"), (Step::DeleteRule, ""), (closed(), "")],
            ),
            case(
                "switched off, then deleted",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (switch(false), ""),
                    (Step::DeleteRule, ""),
                    (closed(), ""),
                ],
            ),
            case(
                "disabled",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::Rule(json!({"enabled": false})), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "the trigger does not match any more",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::Trigger(compares("name", "other")), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "the destination is no longer the rule's",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::Rule(json!({"destinationNames": []})), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "a match without destinations",
                json!({"sendUpdates": true, "destinationNames": []}),
                None,
                vec![(plain(), ""), (closed(), ""), (closed(), "")],
            ),
            case(
                "closed while suppressed",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (set("STATUS_SUPPRESSED"), ""),
                    (set("STATUS_CLOSED"), "update"),
                ],
            ),
            case(
                "nobody was told, nobody is owed",
                updates(),
                Some(compares("name", "other")),
                vec![(plain(), ""), (closed(), "")],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn taking_an_acknowledgement_back_is_an_update() {
    hold(|| {
        let by_sender = |acknowledged: bool| sent(json!({"acknowledged": acknowledged}));
        vec![
            case(
                "by the operator",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (acknowledged(true), "update"),
                    (acknowledged(false), "update"),
                    (acknowledged(true), "update"),
                ],
            ),
            case(
                "by the sender",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (by_sender(true), "update"),
                    (by_sender(false), "update"),
                ],
            ),
            case(
                "what is already so changes nothing",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (acknowledged(false), ""),
                    (acknowledged(true), "update"),
                    (acknowledged(true), ""),
                    (by_sender(true), ""),
                ],
            ),
            case(
                "a rule without updates",
                json!({}),
                None,
                vec![
                    (plain(), "opening"),
                    (acknowledged(true), ""),
                    (acknowledged(false), ""),
                ],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn what_is_suppressed_from_the_start_and_closed_is_told_to_nobody() {
    hold(|| {
        let suppressed = || sent(json!({"status": "STATUS_SUPPRESSED"}));
        let by_status = || Some(compares("status", "closed"));
        vec![
            case(
                "closed by its sender",
                updates(),
                None,
                vec![
                    (suppressed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "closed by an operator",
                updates(),
                None,
                vec![
                    (suppressed(), ""),
                    (set("STATUS_CLOSED"), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "though the query speaks of status",
                updates(),
                by_status(),
                vec![
                    (suppressed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "the next occurrence is another matter",
                updates(),
                None,
                vec![
                    (suppressed(), ""),
                    (closed(), ""),
                    (plain(), "opening"),
                    (closed(), "update"),
                ],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn a_new_definition_tells_of_what_is_open_when_that_is_asked_for() {
    let world = World::start();
    let receiver = Receiver::start().await;
    for wire in world.wires() {
        let name = format!("{} new", wire.name());
        let hosts: Vec<_> = (0..7).map(|at| format!("{name} {at}")).collect();
        let mut events: Vec<_> = hosts.iter().map(|host| event(host)).collect();
        events[5]["status"] = json!("STATUS_CLOSED");
        events[6]["status"] = json!("STATUS_SUPPRESSED");
        send(&wire, &events).await;
        let destination = json!({"name": name, "type": {"webhook": {"url": receiver.url("/")}}});
        wire.ok(CREATE_DESTINATION, &json!({"destination": destination}))
            .await;
        let clause = json!({"startsWith": {"field": "dimensions.host", "value": name}});
        let trigger = json!({
            "name": name, "type": {"event": {"query": {"clause": clause}}},
        });
        wire.ok(CREATE_TRIGGER, &json!({"trigger": trigger})).await;
        let rule = json!({
            "name": name, "enabled": true, "triggerNames": [name], "destinationNames": [name],
        });
        let request = json!({"rule": rule, "notifyOpen": true});
        let counts = async || {
            let request = json!({"destinationNames": [name], "pageSize": 1_000});
            let list = wire.ok("DeliveryService/ListDeliveries", &request).await;
            list["deliveries"].as_array().map_or(0, Vec::len)
        };

        let asked = with(&request, &json!({"validateOnly": true}));
        let counted = wire.ok(CREATE_RULE, &asked).await;
        assert_eq!(counted["notifyCount"], 5, "{counted}");
        assert_eq!(counts().await, 0, "asking tells nobody");
        wire.ok(CREATE_RULE, &request).await;
        assert_eq!(counts().await, 5);
        send(&wire, &events[..5]).await;
        assert_eq!(counts().await, 5, "once per rule and occurrence");
    }
}

#[tokio::test]
async fn the_message_of_a_close_that_says_little_has_the_text_of_the_opening() {
    let world = World::start();
    let receiver = Receiver::start().await;
    for wire in world.wires() {
        let case = case("text", updates(), None, Vec::new());
        let play = Play::begin(&wire, &receiver.url("/"), 0, &case).await;
        send(&wire, &[event(&play.host)]).await;
        let close = json!({
            "name": "disk-full", "dimensions": {"host": play.host}, "status": "STATUS_CLOSED",
        });
        send(&wire, &[close]).await;

        let messages = eventually("opening and closing", async || {
            let messages: Vec<Value> = receiver.received().iter().map(Received::json).collect();
            let about = |message: &Value| message["event"]["dimensions"]["host"] == play.host;
            let mut messages: Vec<_> = messages.into_iter().filter(about).collect();
            messages.sort_by_key(|message| message["clear"].as_bool());
            (messages.len() == 2).then_some(messages)
        })
        .await;
        assert_eq!(messages[1]["clear"], true);
        assert_eq!(messages[1]["event"]["status"], 3);
        for field in ["summary", "body", "type", "fields", "severity", "name"] {
            let (opening, closing) = (&messages[0]["event"][field], &messages[1]["event"][field]);
            assert_eq!(opening, closing, "{}: {field}", wire.name());
        }
        assert_eq!(messages[0]["event"]["summary"], "disk is full");
    }
}
