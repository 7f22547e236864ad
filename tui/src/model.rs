//! The whole state of the console, changed only by [`update::update`].

pub(crate) mod access;
pub(crate) mod bulk;
pub(crate) mod document;
pub(crate) mod done_events;
pub(crate) mod events;
pub(crate) mod field;
pub(crate) mod filter;
pub(crate) mod filter_history;
pub(crate) mod form;
pub(crate) mod inquiry;
pub(crate) mod list;
pub(crate) mod matching;
pub(crate) mod message;
pub(crate) mod on_call;
pub(crate) mod overlay;
pub(crate) mod page;
pub(crate) mod reply_purpose;
pub(crate) mod row_anchor;
pub(crate) mod rows;
pub(crate) mod setup_checklist;
pub(crate) mod silencing;
pub(crate) mod sort;
pub(crate) mod store;
pub(crate) mod tabs;
pub(crate) mod undo;
pub(crate) mod update;
mod view;
pub(crate) mod wall;
pub(crate) mod write;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use crossterm::event::KeyEvent;
use jiff::tz::TimeZone;

use self::{
    filter::{
        Clock, Reader,
        completion::{self, Completion},
    },
    overlay::Overlay,
    page::{Content, Page},
    reply_purpose::ReplyPurpose,
    rows::Arranged,
    store::Store,
    undo::Undo,
};
use crate::{
    client::Ticket,
    data::{Back, Caller, EventRow, Failure, Kind, Object},
    document::Link,
    keymap::{Action, Keymap},
    limits,
    options::{Context, Shell, View},
    route::Route,
    text,
    theme::{Background, Depth, Look, Theme, Token},
};

/// Everything the console knows and shows.
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
#[derive(Debug)]
pub(crate) struct Model {
    /// Columns and rows of the terminal.
    pub(crate) size: (u16, u16),
    /// Milliseconds since 1970, set before each update.
    pub(crate) now_ms: i64,
    pub(crate) zone: TimeZone,
    /// The address of the service, for people.
    pub(crate) service: String,
    /// A shell command that sends an event to it, if that is known.
    pub(crate) sending: Option<String>,
    /// How a shell reaches it.
    pub(crate) shell: Shell,
    /// What its operator calls it, the others that can be gone to, and the one that is to be.
    pub(crate) context: Option<Context>,
    pub(crate) contexts: Vec<String>,
    pub(crate) next_context: Option<String>,
    /// The views of the settings file.
    pub(crate) own_views: Vec<View>,
    pub(crate) read_only: bool,
    /// Whether clicks and the wheel are ours.
    pub(crate) mouse: bool,
    /// Whether what is selected is beside lists, where there is room.
    pub(crate) is_split: bool,
    pub(crate) link: Connection,
    /// When something was last heard that changed what is shown.
    pub(crate) heard_ms: Option<i64>,
    /// The caller as last heard; kept while the link is down.
    pub(crate) caller: Option<Caller>,
    pub(crate) store: Store,
    /// How far back the charts of the overview reach.
    pub(crate) back_to: Back,
    /// Whether lists show how long ago moments are instead of the time.
    pub(crate) shows_ages: bool,
    /// The dimension in the column of hosts: what events were counted by last.
    pub(crate) host_field: String,
    /// The columns that were chosen for a list, by its screen.
    pub(crate) columns_of: HashMap<&'static str, Vec<String>>,
    /// On a wall no one stands before the keys: when it shows another span next.
    pub(crate) cycle: Option<i64>,
    /// The rows of the list on the screen, once they were made.
    arranged: Option<Arranged>,
    pub(crate) page: Page,
    pub(crate) back: Vec<Page>,
    pub(crate) forward: Vec<Page>,
    pub(crate) overlay: Option<Overlay>,
    /// What could not be stored because it changed meanwhile, until what is stored is read.
    pub(crate) clash: Option<Box<Object>>,
    pub(crate) notice: Option<Notice>,
    /// Filters of before, by the screen.
    pub(crate) filters: HashMap<&'static str, Vec<String>>,
    /// The call whose answer is to be copied.
    pub(crate) copies: Option<Ticket>,
    /// What was done and can be taken back, the last at the end.
    pub(crate) done: Vec<Undo>,
    /// Whether every change is asked about, also one that can be taken back.
    pub(crate) asks_always: bool,
    pub(crate) quit: bool,
    pub(crate) theme: Theme,
    /// Whether the terminal shows ASCII alone.
    pub(crate) is_ascii: bool,
    /// What the terminal can show, and what it writes on, if that is known.
    pub(crate) depth: Depth,
    pub(crate) background: Option<Background>,
    pub(crate) keymap: Arc<Keymap>,
    /// Keys that are the beginning of something, and when they are dropped.
    pub(crate) begun: Vec<KeyEvent>,
    pub(crate) begun_until_ms: Option<i64>,
    /// Whether the last message changed anything that is shown.
    pub(crate) touched: bool,
    /// The calls under way, and what their answers are for.
    pub(crate) pending: HashMap<Ticket, ReplyPurpose>,
    /// Actions that follow from what happened, in their order.
    pub(crate) follow: VecDeque<Action>,
    last_ticket: Ticket,
}

/// The first word of the head: it leads to the overview.
pub(crate) const HOME: &str = "Bellwether";
/// Between two words of the breadcrumb.
pub(crate) const CRUMB_GAP: &str = " › ";
/// Columns from which the head has the address.
const ADDRESS_FROM: usize = 100;

/// How the link stands, with the times that matter to people.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Connection {
    Connecting,
    Up,
    Down {
        failure: Failure,
        retry_at_ms: i64,
        last_up_ms: Option<i64>,
    },
}

/// A sentence at the bottom, until the next key or for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) token: Token,
    pub(crate) text: String,
    /// Until when keys leave it there.
    pub(crate) until_ms: Option<i64>,
}

impl Model {
    /// A console that has heard nothing yet.
    pub(crate) fn new(service: String, read_only: bool, zone: TimeZone) -> Self {
        Self {
            size: (80, 24),
            now_ms: 0,
            zone,
            service,
            sending: None,
            shell: Shell::default(),
            context: None,
            contexts: Vec::new(),
            next_context: None,
            own_views: Vec::new(),
            read_only,
            mouse: true,
            is_split: true,
            link: Connection::Connecting,
            heard_ms: None,
            caller: None,
            store: Store::new(),
            back_to: Back::default(),
            shows_ages: false,
            host_field: "host".to_owned(),
            columns_of: HashMap::new(),
            cycle: None,
            arranged: None,
            page: Page::new(Route::Overview),
            back: Vec::new(),
            forward: Vec::new(),
            overlay: None,
            clash: None,
            notice: None,
            filters: HashMap::new(),
            copies: None,
            done: Vec::new(),
            asks_always: false,
            quit: false,
            theme: Theme::default(),
            is_ascii: false,
            depth: Depth::default(),
            background: None,
            keymap: Arc::default(),
            begun: Vec::new(),
            begun_until_ms: None,
            touched: true,
            pending: HashMap::new(),
            follow: VecDeque::new(),
            last_ticket: Ticket(0),
        }
    }

    /// A ticket that was never given out before.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.last_ticket.0 += 1;
        self.last_ticket
    }

    /// A sentence of ours, with the keys in force instead of `‹action_name›`.
    pub(crate) fn tell(&self, sentence: &str) -> String {
        self.keymap.tell(sentence, &self.page.route.places())
    }

    /// The time and the zone that moments in a filter are read with.
    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.now_ms, self.zone.clone())
    }

    /// The newest events that are held.
    fn seen_events(&self) -> impl Iterator<Item = &EventRow> {
        let events = &self.store.events;
        (0..events.len().min(200)).filter_map(|at| events.get(at))
    }

    /// What the filter of events that is typed may continue with, at the cursor.
    pub(crate) fn filter_completion(&self) -> Option<Completion<'_>> {
        let field = self.page.list.typing.as_ref()?;
        let (before, after) = field.split();
        if self.page.route != Route::Events || !after.is_empty() {
            return None;
        }
        completion::of_events(before, &self.seen_events().collect::<Vec<_>>())
    }

    /// The dimensions of the newest events that are held.
    pub(crate) fn seen_dimensions(&self) -> Vec<String> {
        let pairs = self.seen_events().flat_map(|row| row.entity.split(' '));
        let mut keys: Vec<String> = pairs
            .filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Who may be meant to look after events: the caller, the current assignee, and clients as far
    /// as they are known here.
    pub(crate) fn assignees(&self) -> Vec<String> {
        let caller = self.caller.iter().map(|it| it.name.clone());
        let seen = self.seen_events().map(|row| row.assignee.to_string());
        let clients = self.store.of(Kind::Client).rows().iter();
        let clients = clients.map(|row| row.name().to_owned());
        let mut known = HashSet::new();
        let all = caller.chain(seen).chain(clients);
        all.filter(|it| !it.is_empty() && known.insert(it.clone()))
            .collect()
    }

    /// What filters of events are read with.
    pub(crate) fn reader(&self) -> Reader {
        Reader {
            clock: self.clock(),
            seen: self.seen_dimensions(),
        }
    }

    /// Where the line under the cursor of a document leads.
    pub(crate) fn linked(&self) -> Option<Link> {
        let lines = document::current(self).lines;
        let mut rest = lines.into_iter().skip(self.page.reading.cursor);
        if self.is_on_links() {
            // There the cursor is on what can be opened.
            return rest.find_map(|line| line.link);
        }
        rest.next()?.link
    }

    /// Whether the cursor is only ever on what can be opened.
    pub(crate) fn is_on_links(&self) -> bool {
        self.page.route == Route::OnCall || self.shows_wall()
    }

    /// Whether the overview is drawn as a wall: there is room, and something to show.
    pub(crate) fn shows_wall(&self) -> bool {
        let (columns, rows) = self.size;
        let fits = columns >= limits::WALL.0 && rows >= limits::WALL.1;
        let is_read = self.store.overview.value.is_some();
        self.page.route == Route::Overview && fits && is_read && self.first_steps().is_none()
    }

    /// What is drawn with.
    pub(crate) fn look(&self) -> Look {
        Look::new(self.theme, self.depth, self.background)
    }

    /// Rows that a list or a document has on the screen, without those that a notice lies over: the
    /// cursor is never below it.
    pub(crate) fn body_rows(&self) -> usize {
        let head = self.head_height() + 1;
        let rows = usize::from(self.size.1.saturating_sub(head));
        rows.saturating_sub(self.notice_lines().len()).max(1)
    }

    /// Rows above the page: the head, the tabs, the banner while there is no link, and the line of a
    /// list.
    pub(crate) fn head_height(&self) -> u16 {
        let banner = u16::from(matches!(self.link, Connection::Down { .. }));
        1 + u16::from(tabs::has_line(self)) + banner + self.line_above()
    }

    /// What the head begins with, before the breadcrumb.
    pub(crate) fn head_parts(&self) -> Vec<(Token, String)> {
        let mut parts = vec![(Token::Bar, format!(" {HOME}"))];
        if let Some(context) = &self.context {
            parts.push((Token::Bar, " ".to_owned()));
            let token = context.colour.map_or(Token::Tab, Token::Mark);
            parts.push((token, format!(" ◆ {} ", context.name)));
        }
        if self.columns() >= ADDRESS_FROM {
            let address = self.service.trim_end_matches('/');
            let address = address.split_once("://").map_or(address, |(_, host)| host);
            parts.push((Token::Bar, format!("  {address}")));
        }
        if self.read_only {
            parts.push((Token::Bar, " ".to_owned()));
            parts.push((Token::ReadOnly, " read-only ".to_owned()));
        }
        let overview = self.store.overview.value.as_ref();
        let is_refusing = |it: &bellwether_proto::v1::GetOverviewResponse| {
            it.store.as_ref().is_some_and(|it| !it.reason.is_empty())
        };
        for (is_shown, words) in [
            (
                overview.is_some_and(|it| it.quiet_since_time.is_some()),
                " quiet: nothing is sent ",
            ),
            (overview.is_some_and(is_refusing), " events are refused "),
        ] {
            if is_shown {
                parts.push((Token::Bar, " ".to_owned()));
                parts.push((Token::ReadOnly, words.to_owned()));
            }
        }
        parts
    }

    /// Rows between the head and the page: lists tell there where one is. Without tabs it parts others
    /// from the head.
    pub(crate) fn line_above(&self) -> u16 {
        u16::from(self.page.route.is_list() || !tabs::has_line(self))
    }

    /// The notice as it fits the screen.
    pub(crate) fn notice_lines(&self) -> Vec<String> {
        let Some(notice) = &self.notice else {
            return Vec::new();
        };
        let mut lines = text::wrap(&notice.text, self.columns().saturating_sub(4));
        lines.truncate(usize::from(self.size.1 / 2).max(1));
        lines
    }

    /// Columns of the screen.
    pub(crate) fn columns(&self) -> usize {
        usize::from(self.size.0)
    }

    /// Whether calls can be made.
    pub(crate) fn is_up(&self) -> bool {
        self.link == Connection::Up
    }

    pub(crate) fn say(&mut self, token: Token, text: impl Into<String>) {
        self.notice = Some(Notice {
            token,
            text: text.into(),
            until_ms: None,
        });
    }

    /// Says something that stays for a while, whatever keys are pressed.
    pub(crate) fn toast(&mut self, text: String) {
        self.notice = Some(Notice {
            token: Token::Good,
            text,
            until_ms: Some(self.now_ms.saturating_add(limits::TOAST_MS)),
        });
    }

    /// Takes the sentence away, unless it is to stay.
    pub(crate) fn clear_notice(&mut self) {
        let now = self.now_ms;
        self.notice
            .take_if(|notice| notice.until_ms.is_none_or(|until| until <= now));
    }

    /// When something must happen without a key or news, if ever.
    pub(crate) fn wake_at_ms(&self) -> Option<i64> {
        let second = self.now_ms - self.now_ms.rem_euclid(1_000) + 1_000;
        let countdown = self.counts_seconds().then_some(second);
        let minute = self.now_ms - self.now_ms.rem_euclid(60_000) + 60_000;
        let ages = self.has_ages().then_some(minute);
        let refresh = self.is_up().then(|| self.refresh_at_ms()).flatten();
        let tabs = self.tabs_at_ms();
        let check = self.page.form().and_then(|form| form.check_at_ms);
        let live = self.page.form().and_then(|form| form.live.due_ms);
        let tested = self.page.form();
        let tested = tested.and_then(|form| form.bench.wake_at_ms(self.now_ms));
        let due = [
            self.page.list.matching.due_ms,
            self.page.list.anchor.wake_at_ms(),
            countdown,
            ages,
            refresh,
            tabs,
            check,
            live,
            tested,
            self.begun_until_ms,
            self.cycle,
            self.notice.as_ref().and_then(|notice| notice.until_ms),
        ];
        due.into_iter().flatten().min()
    }

    /// When the counts beside the tabs are read again, where they are shown.
    pub(crate) fn tabs_at_ms(&self) -> Option<i64> {
        let is_shown = self.is_up() && tabs::has_line(self);
        let overview = &self.store.overview;
        let is_free = overview.waiting.is_none() && is_shown;
        let at = overview.at_ms.filter(|_| is_free)?;
        Some(self.due_ms(at, limits::TABS_MS))
    }

    /// How old what is on the screen is, counted from when it was received; what is streamed is as
    /// old as the link is down. `None` when nothing was received.
    pub(crate) fn age_ms(&self) -> Option<i64> {
        let received = match (&self.page.content, &self.page.route) {
            (Content::Event { detail, .. }, _) => detail.received_ms,
            (Content::Delivery(delivery), _) => delivery.received_ms,
            (Content::Report(report), _) => report.found.received_ms,
            (_, Route::Reference | Route::Topic(_)) => None,
            (_, Route::Events | Route::Form) => match &self.link {
                Connection::Down { last_up_ms, .. } => *last_up_ms,
                _ => None,
            },
            (_, route) => self.store.received_ms(route),
        };
        received.map(|ms| (self.now_ms - ms).max(0))
    }

    /// Whether there are ages on the screen, which grow by the minute.
    pub(crate) fn has_ages(&self) -> bool {
        self.shows_ages || matches!(self.page.route, Route::Events | Route::Event(_))
    }

    /// Whether a countdown or a running time is on the screen.
    pub(crate) fn counts_seconds(&self) -> bool {
        let running = match &self.page.content {
            Content::Report(report) => report.found.waiting.is_some(),
            _ => false,
        };
        running || self.has_countdown() || matches!(self.link, Connection::Down { .. })
    }

    /// How old the counts of the overview are, where something changed since and they are not counted again at
    /// once: with very many events that takes the service seconds.
    pub(crate) fn counts_age_ms(&self) -> Option<i64> {
        let store = &self.store;
        let age_ms = self.now_ms.saturating_sub(store.wall.at_ms?);
        let is_old = store.counted_revision != store.overview.revision && age_ms >= limits::OLD_MS;
        is_old.then_some(age_ms)
    }

    /// When the list on the screen is read again, if the service does not stream it.
    pub(crate) fn refresh_at_ms(&self) -> Option<i64> {
        let at = self.store.read_ms(&self.page.route)?;
        Some(self.due_ms(at, limits::REFRESH_MS))
    }

    /// When what was read then is read again: at this pace, unless nothing was stored since.
    fn due_ms(&self, at: i64, pace_ms: i64) -> i64 {
        let pace_ms = if self.store.is_settled(&self.page.route, at) {
            limits::UNCHANGED_MS
        } else {
            pace_ms
        };
        at.saturating_add(pace_ms)
    }
}
