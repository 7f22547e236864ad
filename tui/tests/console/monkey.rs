//! A seeded monkey test. The console does not crash, makes no permanent change without a
//! confirmation, keeps the selection, and can be left. This holds for any keys, pastes, clicks and
//! resizes, any responses of the service, and any loss of the connection.
//!
//! `BELLWETHER_MONKEY=ROUNDS` or `ROUNDS:SEED` runs more rounds.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bellwether_proto::{
    cloud::Severity,
    v1::{
        self, destination_service_client::DestinationServiceClient,
        rule_service_client::RuleServiceClient, trigger_service_client::TriggerServiceClient,
    },
};
use bellwether_tui::Headless;

use crate::backend::Real;
use crate::proxy::{Fault, Proxy};

const ROUNDS: usize = 6;
const SEED: u64 = 1;
/// Timeout for the connection to recover; longer than the longest retry delay.
const PATIENCE: Duration = Duration::from_secs(60);
const DEEDS: usize = 120;

const KEYS: &[&str] = &[
    "j",
    "k",
    "gg",
    "G",
    "h",
    "l",
    "<Enter>",
    "<Enter>",
    "<Esc>",
    "<Tab>",
    "<S-Tab>",
    "<Up>",
    "<Down>",
    "<Left>",
    "<Right>",
    "<PageUp>",
    "<PageDown>",
    "<Home>",
    "<End>",
    "<Backspace>",
    "<Delete>",
    "[",
    "]",
    "/",
    ":",
    "?",
    "1",
    "2",
    "2",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "9",
    "n",
    "e",
    "E",
    "D",
    "d",
    "t",
    "T",
    "x",
    "a",
    "A",
    "c",
    "C",
    "s",
    "u",
    "U",
    "w",
    "N",
    "p",
    "o",
    "O",
    "r",
    "R",
    "S",
    "v",
    "+",
    "f",
    "y",
    "y",
    "M",
    "*",
    "<Space>",
    "é",
    "世",
    "<C-s>",
    "<C-t>",
    "<C-e>",
    "<C-r>",
    "<C-o>",
    "<C-u>",
    "<C-w>",
    "<C-d>",
    "<C-z>",
    "<A-a>",
    "<A-c>",
    "<A-s>",
    "<A-n>",
    "<A-b>",
    "<F1>",
];
const WORDS: &[&str] = &[
    "2/severity>=error<Enter>",
    "2/host:1 !x<Enter>",
    "6/state=dead since=2h<Enter>",
    ":theme mono<Enter>",
    ":sort severity<Enter>",
    ":event 0<Enter>",
    "3e<Tab><Tab>x<C-s>",
    "4nsomewhere<Tab><Tab>https://example.net/<C-s>",
    "5n<Tab><Enter><Space><Enter><C-s>",
    "7nsomebody<C-s>",
    "2*c",
    "2<A-a>",
    "2wa note<Enter>",
    "8f<Tab><Tab>",
];
const PASTES: &[&str] = &[
    "y",
    "q\ny\n",
    "\u{1b}[2J\u{1b}]0;gone\u{7}",
    "severity>=error",
    "a\u{202e}b\u{200b}\u{0}世界👩‍👩‍👧",
    "{\"name\": \"x\"}",
];
const SIZES: &[(u16, u16)] = &[
    (80, 24),
    (80, 24),
    (120, 40),
    (60, 15),
    (40, 8),
    (20, 5),
    (1, 1),
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

struct Monkey {
    chance: Chance,
    console: Headless,
    polite: bool,
    keys: usize,
    last: VecDeque<String>,
}

impl Monkey {
    fn note(&mut self, deed: String) {
        self.last.push_back(deed);
        if self.last.len() > 60 {
            self.last.pop_front();
        }
    }

    /// Presses one key, and checks that a change is sent only if the key answers a question with
    /// Yes.
    fn key(&mut self, key: &str) {
        let is_confirming = self.console.is_confirming();
        let says_yes = matches!(key, "y" | "<Enter>");
        if self.polite && is_confirming && says_yes {
            return;
        }
        self.keys += 1;
        self.note(key.to_owned());
        let before = self.console.write_count();
        self.console.press(key).unwrap();
        assert!(
            self.console.write_count() == before || is_confirming && says_yes,
            "changed without confirmation after {:?}",
            self.last
        );
        self.console.buffer();
    }

    fn keys(&mut self, keys: &str) {
        let mut rest = keys;
        while !rest.is_empty() {
            let named = rest.starts_with('<').then(|| rest.find('>')).flatten();
            let end = named.map_or_else(|| rest.chars().next().unwrap().len_utf8(), |at| at + 1);
            self.key(&rest[..end]);
            rest = &rest[end..];
        }
    }

    /// Closes all dialogs that cover the page, including forms with edits.
    fn leave(&mut self) {
        self.console.resize(80, 24);
        for _ in 0..3 {
            if self.console.screen_text().contains("─ Leave «") {
                let before = self.console.write_count();
                self.console.press("y").unwrap();
                assert_eq!(self.console.write_count(), before, "{:?}", self.last);
            } else {
                self.key("<Esc>");
            }
        }
    }

    /// Processes pending messages, and checks that the selection is unchanged, unless the selected
    /// row was removed or a row was just created.
    async fn process_updates(&mut self) {
        let (selected, is_confirming) = (self.console.selected_id(), self.console.is_confirming());
        let listed = self.console.row_ids();
        let before = self.console.write_count();
        self.console.process_updates().await;
        assert!(
            self.console.write_count() == before || is_confirming,
            "changed without confirmation by an update after {:?}",
            self.last
        );
        let now = self.console.selected_id();
        // A list that follows the newest event selects that event.
        let follows = self.console.screen_text().contains("live, following");
        if let Some(id) = selected.filter(|id| self.console.has_row(id) && !follows) {
            let created = now.as_ref().is_some_and(|now| !listed.contains(now));
            assert!(
                now.as_ref() == Some(&id) || created,
                "{id} {now:?} {:?}",
                self.last
            );
        }
    }

    /// Restores the connection, and waits until the console has reconnected.
    async fn heal(&mut self, proxy: &Proxy) {
        proxy.set(Fault::None);
        let end = Instant::now() + PATIENCE;
        while !self.console.is_connected() {
            assert!(Instant::now() < end, "{}", self.console.screen_text());
            self.process_updates().await;
        }
    }

    async fn do_something(&mut self, real: &Real, proxy: &Proxy) {
        match self.chance.below(40) {
            0..28 => {
                let urge =
                    !self.polite && self.console.is_confirming() && self.chance.below(3) == 0;
                let key = if urge { "y" } else { self.chance.one_of(KEYS) };
                self.key(key);
            }
            28..32 => {
                let words = self.chance.one_of(WORDS);
                self.leave();
                self.keys(words);
            }
            32 | 33 => {
                let pasted = self.chance.one_of(PASTES);
                self.note(format!("paste {pasted:?}"));
                let before = self.console.write_count();
                self.console.paste(pasted);
                assert_eq!(
                    self.console.write_count(),
                    before,
                    "by a paste {:?}",
                    self.last
                );
            }
            34 | 35 => {
                let (column, row) = (self.chance.below(130), self.chance.below(45));
                self.note(format!("click {column} {row}"));
                let before = self.console.write_count();
                let cell = |at| u16::try_from(at).unwrap();
                self.console.click(cell(column), cell(row));
                self.console.scroll(column % 2 == 0);
                assert_eq!(
                    self.console.write_count(),
                    before,
                    "by a click {:?}",
                    self.last
                );
            }
            36 => {
                let (columns, rows) = self.chance.one_of(SIZES);
                self.note(format!("resize {columns}x{rows}"));
                self.console.resize(columns, rows);
            }
            37 => {
                let edited = self.chance.below(3);
                self.console.edit(|text| match edited {
                    0 => text.to_owned(),
                    1 => text.replace("disk", "full"),
                    _ => format!("{text}}}"),
                });
            }
            38 => {
                let host = self.chance.below(60);
                self.note(format!("event of {host}"));
                let severity = self.chance.one_of(&[Severity::Error, Severity::Info]);
                real.send(severity, std::iter::once(host.to_string())).await;
            }
            _ => {
                let faults = [Fault::None, Fault::None, Fault::Stalled, Fault::Cut];
                let fault = self.chance.one_of(&faults);
                self.note(format!("{fault:?}"));
                proxy.set(fault);
            }
        }
        self.console.buffer();
    }
}

/// Returns the state that must not change without a Yes: the definitions, except whether a rule is
/// enabled, and the closed events.
async fn state(real: &Real) -> String {
    let channel = real.channel().await;
    let mut triggers = TriggerServiceClient::new(channel.clone());
    let triggers = triggers.list_triggers(real.with_key(v1::ListTriggersRequest::default()));
    let mut rules = RuleServiceClient::new(channel.clone());
    let rules = rules.list_rules(real.with_key(v1::ListRulesRequest::default()));
    let mut destinations = DestinationServiceClient::new(channel);
    let destinations =
        destinations.list_destinations(real.with_key(v1::ListDestinationsRequest::default()));
    let triggers = triggers.await.unwrap().into_inner().triggers.into_iter();
    let rules = rules.await.unwrap().into_inner().rules.into_iter();
    let destinations = destinations.await.unwrap().into_inner().destinations;
    let mut all: Vec<String> = triggers
        .map(|it| format!("{} {}", it.name, it.etag))
        .chain(rules.map(|it| format!("{} {}", it.name, it.message)))
        .chain(
            destinations
                .into_iter()
                .map(|it| format!("{} {}", it.name, it.etag)),
        )
        .collect();
    let occurrences = real.occurrences().await;
    all.extend(
        occurrences
            .iter()
            .filter(|it| it.close_time.is_some())
            .map(|it| format!("{} closed", it.id)),
    );
    all.sort();
    all.join("\n")
}

async fn stock(real: &Real) {
    real.send(Severity::Error, (0..40).map(|host| host.to_string()))
        .await;
    let clause = v1::clause::Kind::Contains(v1::Contains {
        field: "summary".to_owned(),
        value: "disk".to_owned(),
    });
    let query = v1::Query {
        clause: Some(v1::Clause { kind: Some(clause) }),
    };
    let kind = v1::trigger_type::Type::Event(v1::EventTrigger {
        query: Some(query),
        ..v1::EventTrigger::default()
    });
    let trigger = v1::Trigger {
        name: "disk".to_owned(),
        r#type: Some(v1::TriggerType { r#type: Some(kind) }),
        ..v1::Trigger::default()
    };
    let request = real.with_key(v1::CreateTriggerRequest {
        trigger: Some(trigger),
        ..v1::CreateTriggerRequest::default()
    });
    let mut service = TriggerServiceClient::new(real.channel().await);
    service.create_trigger(request).await.unwrap();
}

async fn served() -> (Real, Proxy) {
    let real = Real::start().await;
    stock(&real).await;
    let proxy = Proxy::start(real.address).await;
    (real, proxy)
}

fn requested_run() -> (usize, u64) {
    let Some(text) = std::env::var_os("BELLWETHER_MONKEY") else {
        return (ROUNDS, SEED);
    };
    let text = text.into_string().unwrap();
    let (rounds, seed) = text.split_once(':').unwrap_or((&text, "1"));
    (rounds.parse().unwrap(), seed.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn random_input_causes_no_crash_and_no_unconfirmed_write() {
    let (rounds, seed) = requested_run();
    // Each kind of monkey has a separate service, since actions that one has confirmed may still be
    // in progress after its end.
    let services = [served().await, served().await];
    let (mut keys, mut writes) = (0, 0);
    for round in 0..rounds {
        let (real, proxy) = &services[round % 2];
        proxy.set(Fault::None);
        // Zero is a fixed point of xorshift.
        let number = u64::try_from(round).unwrap() + 1;
        let mut monkey = Monkey {
            chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 32) | 1),
            console: Headless::start(real.options(proxy.address), 80, 24),
            polite: round % 2 == 0,
            keys: 0,
            last: VecDeque::new(),
        };
        let before = state(real).await;
        monkey.heal(proxy).await;
        for deed in 1..=DEEDS {
            monkey.do_something(real, proxy).await;
            if deed % 2 == 0 {
                monkey.process_updates().await;
            }
            if deed % 40 == 0 {
                monkey.heal(proxy).await;
            }
            if monkey.console.has_quit() {
                break;
            }
        }
        monkey.console.resize(80, 24);
        let screen = monkey.console.screen_text();
        assert!(
            !screen.contains("internal error in the console"),
            "{screen}"
        );
        if monkey.polite {
            assert_eq!(monkey.console.write_count(), 0);
            assert_eq!(state(real).await, before, "seed {seed}: {:?}", monkey.last);
        }
        monkey.console.press("<C-c><C-c>").unwrap();
        assert!(monkey.console.has_quit(), "seed {seed}: {:?}", monkey.last);
        keys += monkey.keys;
        writes += monkey.console.write_count();

        let mut fresh = Headless::start(real.options(proxy.address), 80, 24);
        fresh.process_updates().await;
        let page = monkey.chance.one_of(&["1", "2", "4", "6", "7", "9"]);
        fresh.press(page).unwrap();
        fresh.press("q").unwrap();
        assert!(fresh.has_quit(), "pressing q on {page}");
    }
    println!("{keys} keys and {writes} changes in {rounds} rounds from seed {seed}");
    assert!(writes > 0, "a monkey that says Yes changes something");
}
