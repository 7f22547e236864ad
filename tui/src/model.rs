//! The state of the console, changed only by [`update::update`].

pub(crate) mod access;
pub(crate) mod attention;
pub(crate) mod bench;
pub(crate) mod beside;
pub(crate) mod bulk;
pub(crate) mod bulk_undo;
pub(crate) mod coverage;
pub(crate) mod document;
pub(crate) mod events;
pub(crate) mod field;
pub(crate) mod filter;
pub(crate) mod filter_history;
pub(crate) mod form;
pub(crate) mod inquiry;
pub(crate) mod list;
pub(crate) mod loaded;
pub(crate) mod matching;
pub(crate) mod message;
pub(crate) mod on_call;
pub(crate) mod overlay;
pub(crate) mod page;
pub(crate) mod reply;
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
    attention::Attention,
    beside::RowDetails,
    filter::{
        Clock, Reader,
        completion::{self, Completion},
    },
    message::Effect,
    overlay::Overlay,
    page::{Content, Page},
    reply::Reply,
    rows::RowOrder,
    store::Store,
    undo::Undo,
};
use crate::{
    client::{Command, Ticket},
    data::{Caller, ChartPeriod, EventRow, Failure, Kind, Object, Screen},
    document::Link,
    keymap::{Action, Keymap},
    limits,
    options::{Context, Shell, View},
    route::Route,
    text,
    theme::{Appearance, Background, Depth, Theme, Token},
};

#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) size: (u16, u16),
    /// Current time in milliseconds since 1970, set before each update.
    pub(crate) now_ms: i64,
    pub(crate) zone: TimeZone,
    pub(crate) service: String,
    pub(crate) shell: Shell,
    pub(crate) context: Option<Context>,
    pub(crate) contexts: Vec<String>,
    pub(crate) next_context: Option<String>,
    pub(crate) own_views: Vec<View>,
    pub(crate) read_only: bool,
    pub(crate) mouse: bool,
    /// Whether lists show the selected item beside them, as far as the width allows.
    pub(crate) is_split: bool,
    pub(crate) link: Connection,
    pub(crate) last_received_ms: Option<i64>,
    pub(crate) caller: Option<Caller>,
    pub(crate) store: Store,
    pub(crate) chart_period: ChartPeriod,
    pub(crate) shows_ages: bool,
    /// The dimension in the column for hosts: the dimension by which events were last counted.
    pub(crate) host_field: String,
    pub(crate) columns_of: HashMap<&'static str, Vec<String>>,
    /// Time at which a wall display shows the next period; `None` on other displays.
    pub(crate) cycle: Option<i64>,
    arranged: Option<RowOrder>,
    pub(crate) beside: Box<RowDetails>,
    pub(crate) page: Page,
    pub(crate) back: Vec<Page>,
    pub(crate) forward: Vec<Page>,
    pub(crate) overlay: Option<Overlay>,
    /// A draft rejected because the stored resource has changed, until the stored version is read.
    pub(crate) clash: Option<Box<Object>>,
    pub(crate) notice: Option<Notice>,
    pub(crate) filters: HashMap<&'static str, Vec<String>>,
    pub(crate) copies: Option<Ticket>,
    pub(crate) attention: Box<Attention>,
    pub(crate) opener: Option<String>,
    /// The request for the event whose links are opened, or for which a command runs.
    pub(crate) requested_item: Option<Ticket>,
    /// The command to run, by its position in the keymap.
    pub(crate) custom_command: Option<usize>,
    /// Names of the commands that the operator has confirmed once.
    pub(crate) confirmed_commands: HashSet<String>,
    pub(crate) done: Vec<Undo>,
    /// Whether lines are printed instead of screens: pages are shorter, and every change requires a
    /// confirmation, even one that can be undone.
    pub(crate) is_plain: bool,
    pub(crate) quit: bool,
    pub(crate) theme: Theme,
    pub(crate) is_ascii: bool,
    pub(crate) depth: Depth,
    pub(crate) background: Option<Background>,
    pub(crate) keymap: Arc<Keymap>,
    /// Incomplete key sequence, and the time after which it is dropped.
    pub(crate) begun: Vec<KeyEvent>,
    pub(crate) begun_until_ms: Option<i64>,
    /// Whether the last message changed the display.
    pub(crate) touched: bool,
    pub(crate) pending: HashMap<Ticket, Reply>,
    pub(crate) follow: VecDeque<Action>,
    /// Keys pressed before the confirmation opened that they are for.
    pub(crate) keys_ahead: Vec<KeyEvent>,
    pub(crate) effects: Vec<Effect>,
    last_ticket: Ticket,
}

pub(crate) const HOME: &str = "Bellwether";
pub(crate) const CRUMB_GAP: &str = " › ";
const ADDRESS_FROM: usize = 100;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) token: Token,
    pub(crate) text: String,
    /// Time until which keys do not dismiss the notice.
    pub(crate) until_ms: Option<i64>,
}

impl Model {
    pub(crate) fn new(service: String, read_only: bool, zone: TimeZone) -> Self {
        Self {
            size: (80, 24),
            now_ms: 0,
            zone,
            service,
            shell: Shell::default(),
            context: None,
            contexts: Vec::new(),
            next_context: None,
            own_views: Vec::new(),
            read_only,
            mouse: true,
            is_split: true,
            link: Connection::Connecting,
            last_received_ms: None,
            caller: None,
            store: Store::new(),
            chart_period: ChartPeriod::default(),
            shows_ages: false,
            host_field: "host".to_owned(),
            columns_of: HashMap::new(),
            cycle: None,
            arranged: None,
            beside: Box::default(),
            page: Page::new(Route::OVERVIEW),
            back: Vec::new(),
            forward: Vec::new(),
            overlay: None,
            clash: None,
            notice: None,
            filters: HashMap::new(),
            copies: None,
            attention: Box::default(),
            opener: None,
            requested_item: None,
            custom_command: None,
            confirmed_commands: HashSet::new(),
            done: Vec::new(),
            is_plain: false,
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
            keys_ahead: Vec::new(),
            effects: Vec::new(),
            last_ticket: Ticket(0),
        }
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        self.last_ticket.0 += 1;
        self.last_ticket
    }

    pub(crate) fn send(&mut self, command: Command) {
        self.effects.push(Effect::Send(command));
    }

    /// Cancels a call whose response is no longer needed.
    pub(crate) fn abandon(&mut self, ticket: Ticket) {
        self.pending.remove(&ticket);
        self.send(Command::Abandon(ticket));
    }

    pub(crate) fn expand_keys(&self, sentence: &str) -> String {
        self.keymap
            .expand_keys(sentence, &self.page.route.key_places())
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.now_ms, self.zone.clone())
    }

    fn seen_events(&self) -> impl Iterator<Item = &EventRow> {
        let events = &self.store.events;
        (0..events.len().min(200)).filter_map(|at| events.get(at))
    }

    pub(crate) fn filter_completion(&self) -> Option<Completion<'_>> {
        let field = self.page.list.typing.as_ref()?;
        let (before, after) = field.split_at_cursor();
        if self.page.route != Route::EVENTS || !after.is_empty() {
            return None;
        }
        completion::complete_event_filter(before, &self.seen_events().collect::<Vec<_>>())
    }

    pub(crate) fn seen_dimensions(&self) -> Vec<String> {
        let pairs = self.seen_events().flat_map(|row| row.entity.split(' '));
        let mut keys: Vec<String> = pairs
            .filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    pub(crate) fn assignees(&self) -> Vec<String> {
        let caller = self.caller.iter().map(|it| it.name.clone());
        let seen = self.seen_events().map(|row| row.assignee.to_string());
        let clients = self.store.resources(Kind::Client).rows().iter();
        let clients = clients.map(|row| row.name().to_owned());
        let mut known = HashSet::new();
        let all = caller.chain(seen).chain(clients);
        all.filter(|it| !it.is_empty() && known.insert(it.clone()))
            .collect()
    }

    pub(crate) fn filter_reader(&self) -> Reader {
        Reader {
            clock: self.clock(),
            seen: self.seen_dimensions(),
        }
    }

    pub(crate) fn link_at_cursor(&self) -> Option<Link> {
        let lines = document::current_document(self).lines;
        let mut rest = lines.into_iter().skip(self.page.reading.cursor);
        if self.is_link_page() || self.page.route == Route::OVERVIEW {
            // Enter follows the next link, even if the cursor is above it.
            return rest.find_map(|line| line.link);
        }
        rest.next()?.link
    }

    pub(crate) fn is_link_page(&self) -> bool {
        matches!(self.page.route, Route::ON_CALL | Route::OVERVIEW)
    }

    /// Whether the overview is drawn as a wall display: if there is room and data.
    pub(crate) fn shows_wall(&self) -> bool {
        let (columns, rows) = self.size;
        let fits = columns >= limits::WALL.0 && rows >= limits::WALL.1;
        let is_read = self.store.overview.value.is_some();
        self.page.route == Route::OVERVIEW && fits && is_read && self.first_steps().is_none()
    }

    pub(crate) fn appearance(&self) -> Appearance {
        Appearance::new(self.theme, self.depth, self.background)
    }

    /// Returns the rows available to a list or page, not counting those that the notice covers.
    pub(crate) fn body_rows(&self) -> usize {
        let head = self.head_height() + 1;
        let rows = usize::from(self.size.1.saturating_sub(head));
        rows.saturating_sub(self.notice_lines().len()).max(1)
    }

    /// Returns the rows above the page: the header, the tabs, the banner while disconnected, and
    /// the line above a list.
    pub(crate) fn head_height(&self) -> u16 {
        let banner = u16::from(matches!(self.link, Connection::Down { .. }));
        1 + u16::from(tabs::has_tab_line(self)) + banner + self.rows_above()
    }

    pub(crate) fn head_parts(&self) -> Vec<(Token, String)> {
        let mut parts = vec![(Token::Bar, format!(" {HOME}"))];
        if let Some(context) = &self.context {
            parts.push((Token::Bar, " ".to_owned()));
            let token = context.colour.map_or(Token::Tab, Token::Mark);
            parts.push((token, format!(" ◆ {} ", context.name)));
        }
        if self.terminal_columns() >= ADDRESS_FROM {
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

    /// Returns the rows between header and page: for the position in a list, or for a separator if
    /// there are no tabs.
    pub(crate) fn rows_above(&self) -> u16 {
        let has_title = self.page.route.is_list() || !tabs::has_tab_line(self);
        u16::from(has_title && self.cycle.is_none())
    }

    pub(crate) fn notice_lines(&self) -> Vec<String> {
        let Some(notice) = &self.notice else {
            return Vec::new();
        };
        let mut lines = text::wrap_text(&notice.text, self.terminal_columns().saturating_sub(4));
        lines.truncate(usize::from(self.size.1 / 2).max(1));
        lines
    }

    pub(crate) fn terminal_columns(&self) -> usize {
        usize::from(self.size.0)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.link == Connection::Up
    }

    pub(crate) fn show_notice(&mut self, token: Token, text: impl Into<String>) {
        self.notice = Some(Notice {
            token,
            text: text.into(),
            until_ms: None,
        });
    }

    /// Shows a notice that stays for some time, regardless of key presses.
    pub(crate) fn show_toast(&mut self, text: String) {
        self.notice = Some(Notice {
            token: Token::Good,
            text,
            until_ms: Some(self.now_ms.saturating_add(limits::TOAST_MS)),
        });
    }

    /// Removes the notice, unless it must stay longer.
    pub(crate) fn clear_notice(&mut self) {
        let now = self.now_ms;
        self.notice
            .take_if(|notice| notice.until_ms.is_none_or(|until| until <= now));
    }

    /// Returns the time of the next update that is due without a key press or news; `None` if there
    /// is none.
    pub(crate) fn wake_at_ms(&self) -> Option<i64> {
        let second = self.now_ms - self.now_ms.rem_euclid(1_000) + 1_000;
        let countdown = self.counts_seconds().then_some(second);
        let minute = self.now_ms - self.now_ms.rem_euclid(60_000) + 60_000;
        let ages = self.shows_ages().then_some(minute);
        let refresh = self.is_connected().then(|| self.refresh_at_ms()).flatten();
        let tabs = self.tabs_at_ms();
        let check = self.page.form().and_then(|form| form.check_at_ms);
        let live = self.page.form().and_then(|form| form.live.due_ms);
        let tested = self.page.form();
        let tested = tested.and_then(|form| form.bench.wake_at_ms(self.now_ms));
        let due = [
            self.page.list.matching.due_ms,
            self.row_details_due_ms(),
            self.coverage_at_ms(),
            countdown,
            ages,
            refresh,
            tabs,
            self.total_due_ms(),
            self.next_shown_end_ms(),
            self.counts_outdated_at_ms()
                .map(|(_, at)| at)
                .filter(|at| *at > self.now_ms),
            check,
            live,
            tested,
            self.begun_until_ms,
            self.cycle,
            self.stale_at_ms().filter(|at| *at > self.now_ms),
            self.notice.as_ref().and_then(|notice| notice.until_ms),
            self.attention_due_ms(),
        ];
        due.into_iter().flatten().min()
    }

    /// Returns the time at which the counts in the tabs are refreshed. The refresh also shows
    /// whether the service responds.
    pub(crate) fn tabs_at_ms(&self) -> Option<i64> {
        let overview = &self.store.overview;
        let is_free = overview.waiting.is_none() && self.is_connected();
        let at = overview.at_ms.filter(|_| is_free)?;
        let latest = at.saturating_add(limits::REFRESH_MS);
        Some(self.due_ms(at, limits::TABS_MS).min(latest))
    }

    /// Returns the time at which the display becomes stale if the service does not respond before.
    pub(crate) fn stale_at_ms(&self) -> Option<i64> {
        let received = self.last_received_ms.filter(|_| self.is_connected())?;
        Some(received.saturating_add(limits::STALE_MS))
    }

    /// Whether the service has not responded for a while, although the connection is up.
    pub(crate) fn is_response_overdue(&self) -> bool {
        self.stale_at_ms().is_some_and(|at| at <= self.now_ms)
    }

    /// Returns the age of the data on the screen; for streamed data, the time since the connection
    /// broke. `None` if no data was received.
    pub(crate) fn age_ms(&self) -> Option<i64> {
        let received = match (&self.page.content, &self.page.route) {
            (Content::Event { detail, .. }, _) => detail.received_ms,
            (Content::Response(slot), Route::Screen(_) | Route::Delivery(_)) => slot.received_ms(),
            (Content::Report(report), _) => report.found.received_ms,
            (_, Route::Screen(Screen::Reference) | Route::Topic(_)) => None,
            (_, Route::Screen(Screen::Events) | Route::Form) => match &self.link {
                Connection::Down { last_up_ms, .. } => *last_up_ms,
                _ => None,
            },
            (_, route) => self.store.received_ms(route),
        };
        received.map(|ms| (self.now_ms - ms).max(0))
    }

    pub(crate) fn shows_ages(&self) -> bool {
        self.shows_ages || matches!(self.page.route, Route::EVENTS | Route::Event(_))
    }

    pub(crate) fn counts_seconds(&self) -> bool {
        let running = match &self.page.content {
            Content::Report(report) => report.found.waiting.is_some(),
            _ => false,
        };
        let is_old = self.counts_age_ms().is_some();
        running || is_old || self.has_countdown() || matches!(self.link, Connection::Down { .. })
    }

    /// Returns the age of the figures on the screen if they are outdated and not refreshed soon.
    /// With very many events, the service needs seconds to count them.
    pub(crate) fn counts_age_ms(&self) -> Option<i64> {
        let (since_ms, old_ms) = self.counts_outdated_at_ms()?;
        (old_ms <= self.now_ms).then(|| self.now_ms.saturating_sub(since_ms))
    }

    /// Returns the time since which figures on the screen are outdated, and the time from which
    /// their age is shown.
    fn counts_outdated_at_ms(&self) -> Option<(i64, i64)> {
        let route = &self.page.route;
        let since_ms = self.store.outdated_since_ms(route)?;
        let is_live = *route == Route::EVENTS;
        let pace_ms = if is_live {
            limits::LIVE_OLD_MS
        } else {
            limits::OLD_MS
        };
        Some((since_ms, since_ms.saturating_add(pace_ms)))
    }

    /// Returns the time at which the live list of events is counted again, if there were changes
    /// since the last count.
    pub(crate) fn total_due_ms(&self) -> Option<i64> {
        let is_shown = self.is_connected() && self.page.route == Route::EVENTS;
        let events = &self.store.events;
        let is_counted = is_shown && events.loaded && !events.next.is_empty();
        let is_outdated = self.store.changed_ms >= events.total.as_of_ms;
        let due_ms = events.total.count_due_ms(limits::LIVE_MS)?;
        (is_counted && is_outdated).then(|| due_ms.max(self.now_ms))
    }

    /// Returns the time of the next refresh of the list, if the service does not stream it.
    pub(crate) fn refresh_at_ms(&self) -> Option<i64> {
        let at = self.store.read_ms(&self.page.route)?;
        Some(self.due_ms(at, limits::REFRESH_MS))
    }

    /// Returns the time of the next end that the page of an event shows, such as the end of a hold.
    pub(crate) fn next_shown_end_ms(&self) -> Option<i64> {
        let Content::Event { explanation, .. } = &self.page.content else {
            return None;
        };
        let is_free = explanation.waiting.is_none() && self.is_connected();
        let read_ms = explanation.at_ms.filter(|_| is_free)?;
        let explained = explanation.value.as_ref()?;
        let reasons = explained.rules.iter().flat_map(|rule| {
            let others = rule.others.iter().map(|it| &it.reason_detail);
            std::iter::once(&rule.reason_detail).chain(others)
        });
        let ends = reasons.filter_map(|reason| reason.as_ref()?.until);
        let next = ends.filter(|end_ms| *end_ms > explained.time).min()?;
        // The end is by the service's clock, which may differ from this one.
        Some(read_ms.saturating_add(next.saturating_sub(explained.time)))
    }

    /// Returns the time of the next refresh: after this interval, or later if no change was stored
    /// since.
    fn due_ms(&self, at: i64, pace_ms: i64) -> i64 {
        let pace_ms = if self.store.is_up_to_date_since(&self.page.route, at) {
            limits::UNCHANGED_MS
        } else {
            pace_ms
        };
        at.saturating_add(pace_ms)
    }
}
