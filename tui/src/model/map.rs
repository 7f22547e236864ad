//! Triggers, rules and destinations as a drawing: what feeds what, row by row.

use std::collections::HashSet;

use super::store::Store;
use bellwether_proto::filter::part;

use crate::{
    data::{HealthState, Kind, Object},
    kind::health,
    route::Route,
    theme::Token,
};

/// The columns of the map.
pub(crate) const COLUMNS: usize = 3;
/// The column of the rules.
pub(crate) const RULES: usize = 1;

/// The map, after its filter.
#[derive(Debug, Default)]
pub(crate) struct Map {
    pub(crate) rows: Vec<Row>,
}

/// One row: at most one of each kind, and what is drawn between them.
#[derive(Debug)]
pub(crate) struct Row {
    /// Distinguishes it from other rows while things come and go.
    id: String,
    pub(crate) nodes: [Option<Node>; COLUMNS],
    pub(crate) joints: [Joint; COLUMNS - 1],
}

/// A trigger, a rule or a destination.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) route: Route,
    pub(crate) token: Token,
    /// What is remarkable about it; empty when nothing is.
    pub(crate) note: &'static str,
}

/// What is drawn between two columns of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Joint {
    #[default]
    Nothing,
    /// From the only one to the only one.
    Straight,
    /// The first of several on the left, or on the right.
    First,
    /// One between the first and the last, to the left of what they share.
    MiddleIn,
    LastIn,
    /// The same to the right of what they share.
    MiddleOut,
    LastOut,
}

impl Node {
    pub(crate) fn name(&self) -> &str {
        self.route.object()
    }
}

impl Row {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The node of this column, else the nearest one of the row.
    pub(crate) fn node(&self, column: usize) -> Option<&Node> {
        let order = match column {
            0 => [0, 1, 2],
            2 => [2, 1, 0],
            _ => [1, 0, 2],
        };
        order.into_iter().find_map(|at| self.nodes[at].as_ref())
    }

    /// The column whose node a cursor in this column is on.
    pub(crate) fn column(&self, column: usize) -> usize {
        let wanted = self.node(column).map(|node| &node.route);
        let found = |node: &Option<Node>| node.as_ref().map(|node| &node.route) == wanted;
        self.nodes.iter().position(found).unwrap_or(column)
    }
}

/// What a filter of the map leaves.
enum Wanted {
    All,
    /// Only where something is remarkable.
    Marked,
    /// What touches this one.
    Around(Route),
    /// What holds these words, in lower case.
    Words(String),
}

impl Wanted {
    fn read(filter: &str) -> Self {
        let filter = filter.trim();
        let name = |text: &str| text.trim_matches('"').to_owned();
        match filter.split_once('=') {
            _ if filter.is_empty() => Self::All,
            _ if filter == "!" => Self::Marked,
            Some(("trigger", it)) => Self::Around(Route::Object(Kind::Trigger, name(it))),
            Some(("rule", it)) => Self::Around(Route::Object(Kind::Rule, name(it))),
            Some(("destination", it)) => Self::Around(Route::Object(Kind::Destination, name(it))),
            _ => Self::Words(filter.to_lowercase()),
        }
    }

    fn keeps<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> bool {
        let mut nodes = nodes.into_iter();
        match self {
            Self::All => true,
            Self::Marked => nodes.any(|node| !node.note.is_empty()),
            Self::Around(route) => nodes.any(|node| node.route == *route),
            Self::Words(words) => nodes.any(|node| {
                node.note.contains(words.as_str()) || node.name().to_lowercase().contains(words)
            }),
        }
    }
}

/// The filter that leaves what touches this one.
pub(crate) fn around(node: &Node) -> String {
    let word = node.route.kind().map_or("", Kind::word);
    part(word, node.name())
}

impl Map {
    /// Draws what is stored, as far as the filter keeps it: the rules by name, then the triggers
    /// that feed nothing and the destinations that nothing feeds.
    pub(crate) fn of(store: &Store, filter: &str) -> Self {
        let wanted = Wanted::read(filter);
        let mut map = Self::default();
        let nodes = Nodes::of(store);
        let mut rules: Vec<&Object> = store.of(Kind::Rule).rows().iter().collect();
        rules.sort_by(|one, other| one.name().cmp(other.name()));
        for rule in rules {
            let bundle = Bundle::of(&nodes, rule);
            let all = bundle.triggers.iter().chain(&bundle.destinations);
            if wanted.keeps(all.chain([&bundle.rule])) {
                bundle.draw(&mut map);
            }
        }
        for trigger in store.of(Kind::Trigger).rows() {
            if trigger.texts("ruleNames").len() == 0 {
                map.alone(&wanted, 0, nodes.trigger(trigger.name()));
            }
        }
        for destination in store.of(Kind::Destination).rows() {
            if destination.texts("ruleNames").len() == 0 {
                map.alone(&wanted, 2, nodes.destination(destination.name()));
            }
        }
        map
    }

    fn alone(&mut self, wanted: &Wanted, column: usize, node: Node) {
        if wanted.keeps([&node]) {
            let mut nodes = [None, None, None];
            let id = format!("{column}\0{}", node.name());
            nodes[column] = Some(node);
            let joints = [Joint::Nothing; 2];
            self.rows.push(Row { id, nodes, joints });
        }
    }

    /// How many triggers feed nothing, and how many destinations nothing feeds.
    pub(crate) fn unused(store: &Store) -> (usize, usize) {
        let triggers = store.of(Kind::Trigger).rows().iter();
        let destinations = store.of(Kind::Destination).rows().iter();
        (
            triggers
                .filter(|row| row.texts("ruleNames").len() == 0)
                .count(),
            destinations
                .filter(|row| row.texts("ruleNames").len() == 0)
                .count(),
        )
    }
}

/// What is known about the nodes, looked up once.
struct Nodes<'a> {
    store: &'a Store,
    triggers: HashSet<&'a str>,
    /// Triggers that any rule names.
    used: HashSet<&'a str>,
    /// Triggers and destinations of a rule that is enabled.
    live: HashSet<(Kind, &'a str)>,
    destinations: std::collections::HashMap<&'a str, (HealthState, bool)>,
}

impl<'a> Nodes<'a> {
    fn of(store: &'a Store) -> Self {
        let enabled = store
            .of(Kind::Rule)
            .rows()
            .iter()
            .filter(|rule| rule.flag("enabled"));
        let live = enabled.flat_map(|rule| {
            let triggers = rule.texts("triggerNames").map(|it| (Kind::Trigger, it));
            let destinations = rule.texts("destinationNames");
            triggers.chain(destinations.map(|it| (Kind::Destination, it)))
        });
        let rules = store.of(Kind::Rule).rows().iter();
        let used = rules.flat_map(|rule| rule.texts("triggerNames"));
        let triggers = store.of(Kind::Trigger).rows().iter();
        let destinations = store.of(Kind::Destination).rows().iter();
        Self {
            store,
            used: used.collect(),
            triggers: triggers.map(Object::name).collect(),
            live: live.collect(),
            destinations: destinations
                .map(|row| {
                    let used = row.texts("ruleNames").len() > 0;
                    (row.name(), (health(row), used))
                })
                .collect(),
        }
    }

    fn trigger(&self, name: &str) -> Node {
        let unread = self.store.of(Kind::Trigger).value.is_none();
        let known = unread || self.triggers.contains(name);
        let (token, note) = if !known {
            (Token::Bad, "is gone")
        } else if self.live.contains(&(Kind::Trigger, name)) || unread {
            (Token::Text, "")
        } else if self.used.contains(name) {
            (Token::Dim, "feeds disabled rules only")
        } else {
            (Token::Warning, "feeds nothing")
        };
        let route = Route::Object(Kind::Trigger, name.to_owned());
        Node { route, token, note }
    }

    fn destination(&self, name: &str) -> Node {
        let found = self.destinations.get(name);
        let (token, note) = match found {
            None if self.store.of(Kind::Destination).value.is_none() => (Token::Text, ""),
            None => (Token::Bad, "is gone"),
            Some((HealthState::Paused, _)) => (Token::Warning, "paused"),
            Some((HealthState::Failing, _)) => (Token::Bad, "failing"),
            Some((_, false)) => (Token::Warning, "nothing feeds it"),
            Some(_) if !self.live.contains(&(Kind::Destination, name)) => {
                (Token::Dim, "fed by disabled rules only")
            }
            Some(_) => (Token::Text, ""),
        };
        let route = Route::Object(Kind::Destination, name.to_owned());
        Node { route, token, note }
    }
}

/// A rule with all that it joins.
struct Bundle {
    rule: Node,
    triggers: Vec<Node>,
    destinations: Vec<Node>,
}

impl Bundle {
    fn of(nodes: &Nodes<'_>, rule: &Object) -> Self {
        let triggers = rule.texts("triggerNames");
        let destinations = rule.texts("destinationNames");
        let (token, note) = match (triggers.len(), destinations.len()) {
            (0, 0) => (Token::Warning, "joins nothing"),
            (0, _) => (Token::Warning, "nothing feeds it"),
            (_, 0) => (Token::Warning, "feeds nothing"),
            _ if !rule.flag("enabled") => (Token::Dim, "disabled"),
            _ => (Token::Good, ""),
        };
        Self {
            rule: Node {
                route: Route::Object(Kind::Rule, rule.name().to_owned()),
                token,
                note,
            },
            triggers: triggers.map(|name| nodes.trigger(name)).collect(),
            destinations: destinations.map(|name| nodes.destination(name)).collect(),
        }
    }

    fn draw(self, map: &mut Map) {
        let name = self.rule.name().to_owned();
        let (left, right) = (self.triggers.len(), self.destinations.len());
        let mut rule = Some(self.rule);
        let mut triggers = self.triggers.into_iter();
        let mut destinations = self.destinations.into_iter();
        for at in 0..left.max(right).max(1) {
            map.rows.push(Row {
                id: format!("1\0{name}\0{at}"),
                nodes: [triggers.next(), rule.take(), destinations.next()],
                joints: [
                    joint(at, left, Joint::MiddleIn, Joint::LastIn),
                    joint(at, right, Joint::MiddleOut, Joint::LastOut),
                ],
            });
        }
    }
}

fn joint(at: usize, count: usize, middle: Joint, last: Joint) -> Joint {
    match at {
        _ if at >= count => Joint::Nothing,
        0 if count == 1 => Joint::Straight,
        0 => Joint::First,
        _ if at + 1 == count => last,
        _ => middle,
    }
}

impl Joint {
    /// How it is drawn, in four cells.
    pub(crate) fn drawn(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (Self::Nothing, _) => "    ",
            (Self::Straight, false) => "───▶",
            (Self::First, false) => "─┬─▶",
            (Self::MiddleIn, false) => "─┤  ",
            (Self::LastIn, false) => "─┘  ",
            (Self::MiddleOut, false) => " ├─▶",
            (Self::LastOut, false) => " └─▶",
            (Self::Straight, true) => "--->",
            (Self::First, true) => "-+->",
            (Self::MiddleIn, true) => "-+  ",
            (Self::LastIn, true) => "-'  ",
            (Self::MiddleOut, true) => " +->",
            (Self::LastOut, true) => " `->",
        }
    }
}
