//! The list of all actions.

use std::sync::LazyLock;

use crossterm::event::KeyCode;

use super::actions::{Action, ActionPlace, Entry, Group, Lines, Requirement};
use crate::data::{Kind, Role, Screen};

fn resource_places() -> Vec<ActionPlace> {
    ActionPlace::for_kinds(Kind::is_edited).collect()
}

fn creatable_places() -> Vec<ActionPlace> {
    let kinds = Kind::ALL.iter().filter(|kind| kind.is_created());
    kinds.map(|kind| ActionPlace::Many(*kind)).collect()
}

fn pages_with_links() -> Vec<ActionPlace> {
    let kinds = Kind::ALL.iter().filter(|kind| kind.has_page());
    let pages = kinds.map(|kind| ActionPlace::One(*kind));
    let others = [
        ActionPlace::Delivery,
        ActionPlace::Screen(Screen::Reference),
        ActionPlace::Report,
    ];
    let overview = std::iter::once(ActionPlace::Screen(Screen::Overview));
    overview.chain(pages).chain(others).collect()
}

/// Keys that have another meaning in one place: on the on-call screen, `h` is handover.
pub(super) const EXCEPTIONS: [(Action, ActionPlace, KeyCode); 1] = [(
    Action::Back,
    ActionPlace::Screen(Screen::OnCall),
    KeyCode::Char('h'),
)];

const ANYWHERE: &[ActionPlace] = &[ActionPlace::Anywhere];
const MOVING: &[ActionPlace] = &[ActionPlace::List, ActionPlace::Document];
const EVENTS: &[ActionPlace] = &[ActionPlace::Screen(Screen::Events), ActionPlace::Event];
/// Places in which an action also applies to all events of a group.
const COUNTED: &[ActionPlace] = &[
    ActionPlace::Screen(Screen::Events),
    ActionPlace::Event,
    ActionPlace::EventGroups,
];
const GROUPS: &[ActionPlace] = &[
    ActionPlace::Many(Kind::Group),
    ActionPlace::One(Kind::Group),
];
const PENDING: &[ActionPlace] = &[
    ActionPlace::Many(Kind::Pending),
    ActionPlace::One(Kind::Pending),
];
const ON_CALL: &[ActionPlace] = &[
    ActionPlace::Screen(Screen::OnCall),
    ActionPlace::Many(Kind::Schedule),
    ActionPlace::Many(Kind::Response),
    ActionPlace::Many(Kind::Policy),
    ActionPlace::Many(Kind::Contact),
    ActionPlace::Many(Kind::Heartbeat),
];
const SCHEDULES: &[ActionPlace] = &[
    ActionPlace::Screen(Screen::OnCall),
    ActionPlace::Many(Kind::Schedule),
    ActionPlace::One(Kind::Schedule),
];
const FEEDS: &[ActionPlace] = &[
    ActionPlace::Many(Kind::Schedule),
    ActionPlace::One(Kind::Schedule),
    ActionPlace::Many(Kind::Contact),
    ActionPlace::One(Kind::Contact),
];
const HEARTBEATS: &[ActionPlace] = &[
    ActionPlace::Many(Kind::Heartbeat),
    ActionPlace::One(Kind::Heartbeat),
];
const DRILLS: &[ActionPlace] = &[
    ActionPlace::Many(Kind::Drill),
    ActionPlace::One(Kind::Drill),
];
const RESPONSES: &[ActionPlace] = &[
    ActionPlace::Screen(Screen::OnCall),
    ActionPlace::Many(Kind::Response),
    ActionPlace::One(Kind::Response),
];
const DELIVERIES: &[ActionPlace] = &[
    ActionPlace::Screen(Screen::Deliveries),
    ActionPlace::Delivery,
];
const FORM: &[ActionPlace] = &[ActionPlace::Form];
/// The action is also available in forms, except with keys that type text.
const EVERYWHERE: &[ActionPlace] = &[ActionPlace::Anywhere, ActionPlace::Form];
const EDIT: Requirement = Requirement::Write(Role::Editor);
const OPERATE: Requirement = Requirement::Write(Role::Operator);
const VIEW: Requirement = Requirement::Role(Role::Viewer);
const LINES: Lines = Lines::PLAIN;

macro_rules! lines {
    () => {
        LINES
    };
    ($lines:expr) => {
        $lines
    };
}

/// Defines the actions, grouped as in the help; a group may have several parts. A row contains the
/// keys, places, requirement, rank among the hints (0 for none) and the form in plain mode,
/// followed by the name for hints and a full sentence for the palette and help.
macro_rules! actions {
    ($($group:ident { $($action:ident [$($key:literal),+] in $places:expr, $need:expr, $hint:literal $([$lines:expr])?
        $name:literal: $title:literal;)+ })+) => {
        fn table() -> Vec<Entry> { vec![$($(Entry {
            action: Action::$action,
            group: Group::$group,
            name: $name,
            title: $title,
            keys: &[$($key),+],
            places: $places.to_vec(),
            need: $need,
            hint: $hint,
            lines: lines!($($lines)?),
        }),+),+] }
    };
}

/// All actions: first those that open a screen or a list, then those of the table below.
pub(crate) static ACTIONS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut actions = opening_actions();
    actions.extend(table());
    actions
});

/// Returns the actions that open a screen or a list. Those with a digit as key are first.
fn opening_actions() -> Vec<Entry> {
    let entry = |action, name, (keys, title)| Entry {
        action,
        group: Group::GoTo,
        name,
        title,
        keys,
        places: ANYWHERE.to_vec(),
        need: Requirement::None,
        hint: 0,
        lines: LINES,
    };
    let screens = Screen::ALL.iter();
    let screens = screens.map(|it| entry(Action::Show(*it), it.name(), it.keys_and_help()));
    let kinds = Kind::ALL.iter();
    let kinds = kinds.map(|it| entry(Action::Go(*it), it.plural(), it.keys_and_help()));
    let mut all: Vec<Entry> = screens.chain(kinds).collect();
    all.sort_by_key(|entry| DIGITS.find(entry.keys[0]).unwrap_or(DIGITS.len()));
    all
}

/// The digits as on a keyboard.
const DIGITS: &str = "1234567890";

actions! {
    Move {
        Open ["<Enter>", "l", "<Right>"] in MOVING, Requirement::None, 10
            "open": "Open the selected item";
    }
    Events {
        Acknowledge ["a"] in COUNTED, OPERATE, 12 [LINES.and_several()]
            "ack": "Acknowledge the event and stop paging";
        Unacknowledge ["A"] in EVENTS, OPERATE, 0 [LINES.and_several()]
            "unack": "Remove the acknowledgement; paging may resume";
        CloseEvent ["c"] in COUNTED, OPERATE, 14 [LINES.and_several()]
            "close": "Close the event; its next report reopens it";
        Suppress ["s"] in COUNTED, OPERATE, 16 [LINES.and_several()]
            "suppress": "Suppress the event: keep it open, send nothing";
        Reopen ["u"] in EVENTS, OPERATE, 0 [LINES.and_several()]
            "reopen": "Reopen a closed or suppressed event";
        Annotate ["w"] in EVENTS, OPERATE, 18 [LINES.and_several().and_text()]
            "note": "Add a note visible to everyone";
        Mine ["i"] in COUNTED, OPERATE, 19 [LINES.and_several()]
            "mine": "Assign the event to yourself, or unassign it";
        Assign ["@"] in EVENTS, OPERATE, 0 [LINES.and_several().and_text()]
            "assign": "Assign the event to another client";
    }
    Console {
        Undo ["U"] in ANYWHERE, OPERATE, 0 [LINES.and_all()]
            "undo": "Undo your last change to events, silences or rules";
    }
    OnCall {
        AcknowledgeResponse ["a"] in RESPONSES, OPERATE, 12
            "ack": "Acknowledge the event";
        AcknowledgeFor ["A"] in RESPONSES, OPERATE, 13
            "ack for": "Acknowledge the event temporarily";
        Escalate [">"] in RESPONSES, OPERATE, 14
            "escalate": "Run the next escalation step now";
        Override ["o"] in SCHEDULES, OPERATE, 12
            "override": "Put others on call temporarily";
        Feed ["f"] in FEEDS, OPERATE, 16
            "feed": "Show the URL of the iCalendar feed";
        RevokeFeed ["F"] in FEEDS, EDIT, 0
            "revoke feed": "Revoke the URL of the iCalendar feed and create a new one";
        RotateHeartbeat ["r"] in HEARTBEATS, EDIT, 16
            "new address": "Create a new URL with a key for cron jobs and scripts";
        ForgetExpectation ["f"] in &[ActionPlace::One(Kind::Heartbeat)], EDIT, 18
            "forget": "Forget an expected beat and close its event";
        RunDrill ["r"] in DRILLS, OPERATE, 12
            "run now": "Start a run of the drill now";
    }
    Messages {
        Release ["r"] in PENDING, OPERATE, 12
            "release": "Send the held notifications now";
    }
    Events {
        AcknowledgeGroup ["a"] in GROUPS, OPERATE, 12
            "ack": "Acknowledge all open events in the group";
        CloseGroup ["c"] in GROUPS, OPERATE, 14
            "close": "Close all open events in the group";
        SuppressGroup ["s"] in GROUPS, OPERATE, 16
            "suppress": "Suppress all open events in the group";
        AcknowledgeAll ["<A-a>"] in &[ActionPlace::Screen(Screen::Events)], OPERATE, 0 [LINES.and_all()]
            "ack all": "Count and acknowledge all matching events";
        CloseAll ["<A-c>"] in &[ActionPlace::Screen(Screen::Events)], OPERATE, 0 [LINES.and_all()]
            "close all": "Count and close all matching events";
        SuppressAll ["<A-s>"] in &[ActionPlace::Screen(Screen::Events)], OPERATE, 0 [LINES.and_all()]
            "suppress all": "Count and suppress all matching events";
        AnnotateAll ["<A-n>"] in &[ActionPlace::Screen(Screen::Events)], OPERATE, 0 [LINES.and_all().and_text()]
            "note all": "Count all matching events and add a note";
        Explain ["x"] in EVENTS, VIEW, 20
            "explain": "Explain why each rule did or did not notify";
        Unfold ["o"] in &[ActionPlace::Event], Requirement::None, 0
            "unfold": "Show or hide the conditions of rules that did not match";
        Silence ["z"] in COUNTED, OPERATE, 21
            "silence": "Silence the event, its host, its name or all matches";
        OpenLink ["L"] in EVENTS, VIEW, 0 [LINES.and_screen()]
            "link": "Open a runbook or another link of the event in the browser";
        TriggerFromEvent ["T"] in EVENTS, EDIT, 22
            "trigger": "Create a trigger from this event";
        Pause ["p"] in &[ActionPlace::Screen(Screen::Events)], Requirement::None, 24 [LINES.and_all().without_output()]
            "pause": "Pause or resume live updates";
        Follow ["f"] in &[ActionPlace::Screen(Screen::Events)], Requirement::None, 25 [LINES.and_screen()]
            "follow": "Follow the newest event until the next key press";
        GroupBy ["b"] in &[ActionPlace::Screen(Screen::Events), ActionPlace::EventGroups], VIEW, 17 [LINES.and_screen()]
            "group by": "Count the events by host, name or another field";
        ChooseView ["V"] in &[ActionPlace::Screen(Screen::Events), ActionPlace::EventGroups], VIEW, 0 [LINES.and_screen()]
            "view": "Choose a view of the events";
        NextView ["<Tab>"] in &[ActionPlace::Screen(Screen::Events)], VIEW, 0 [LINES.and_screen()]
            "next view": "Go to the next view of events";
        SaveView ["<A-v>"] in &[ActionPlace::Screen(Screen::Events), ActionPlace::EventGroups], OPERATE, 0
            "save view": "Save this list as a shared view";
        OpenOnly ["o"] in &[ActionPlace::Screen(Screen::Events), ActionPlace::EventGroups], Requirement::None, 26 [LINES.and_all()]
            "closed": "Show or hide closed occurrences";
    }
    Resources {
        New ["n"] in creatable_places(), EDIT, 12 [LINES.and_all()]
            "new": "Create one in a form";
        Edit ["e"] in resource_places(), EDIT, 14
            "edit": "Edit in a form";
        EditText ["E"] in resource_places(), EDIT, 30
            "as text": "Edit as text in $EDITOR";
        Duplicate ["D"] in resource_places(), EDIT, 0
            "duplicate": "Create a copy in a form";
        Delete ["d"] in resource_places(), EDIT, 28
            "delete": "Delete after confirmation";
    }
    Tests {
        TestDestination ["t"] in &[ActionPlace::Many(Kind::Destination), ActionPlace::One(Kind::Destination), ActionPlace::Report], OPERATE, 11
            "test": "Send a test message and show the result";
    }
    Resources {
        PauseDestination ["p"] in &[ActionPlace::Many(Kind::Destination), ActionPlace::One(Kind::Destination)], OPERATE, 26
            "pause": "Pause or resume the destination";
    }
    Messages {
        DeadLetters ["r"] in &[ActionPlace::Many(Kind::Destination), ActionPlace::One(Kind::Destination)], VIEW, 13
            "dead letters": "Show dead letters, which can be resent";
    }
    Tests {
        TestWithEvent ["v"] in &[ActionPlace::Report], VIEW, 12 [LINES.and_text()]
            "with event": "Repeat with a stored event instead of the sample";
    }
    Messages {
        SendWaiting ["s"] in &[ActionPlace::Report], OPERATE, 13
            "send waiting": "Send messages waiting for a tested destination";
    }
    Tests {
        TestTrigger ["t"] in &[ActionPlace::Many(Kind::Trigger), ActionPlace::One(Kind::Trigger)], OPERATE, 11
            "try": "Test on stored events of the last 24 h";
        TestMapping ["t"] in &[ActionPlace::Many(Kind::Mapping), ActionPlace::One(Kind::Mapping)], OPERATE, 11 [LINES.and_text()]
            "test": "Test on a pasted document, without creating events";
        TestWithDocument ["w"] in &[ActionPlace::Report], OPERATE, 12 [LINES.and_text()]
            "with document": "Test another document";
        TestContact ["t"] in &[ActionPlace::Many(Kind::Contact), ActionPlace::One(Kind::Contact)], OPERATE, 11
            "test": "Send a test message through each method of the contact";
        LongerTry ["+"] in &[ActionPlace::Report], OPERATE, 0
            "longer": "Test a trigger, or show a handover, for another time span";
        NoiseBy ["B"] in &[ActionPlace::Report], VIEW, 11
            "count by": "Group noise by rule, trigger, destination, event name or contact";
        PreviewRule ["p"] in &[ActionPlace::Many(Kind::Rule), ActionPlace::One(Kind::Rule)], VIEW, 16
            "preview": "Preview the message for each destination";
    }
    Resources {
        Toggle ["o"] in &[ActionPlace::Many(Kind::Rule), ActionPlace::One(Kind::Rule)], EDIT, 11
            "on/off": "Enable or disable the rule";
    }
    Messages {
        NextState ["<Tab>"] in &[ActionPlace::Screen(Screen::Deliveries)], Requirement::None, 11 [LINES.and_all()]
            "next tab": "Go to the next tab: all, waiting, dead, delivered, shadowed";
    }
    OnCall {
        NextOnCall ["<Tab>"] in ON_CALL, Requirement::None, 11 [LINES.and_screen()]
            "next tab": "Go to the next tab: now, schedules, responses, policies, contacts, heartbeats";
    }
    Messages {
        SendAgain ["r"] in DELIVERIES, OPERATE, 12 [LINES.and_several()]
            "send again": "Resend an ended delivery, or retry a waiting one now";
        CancelDelivery ["c"] in DELIVERIES, OPERATE, 14 [LINES.and_several()]
            "cancel": "Cancel a delivery in progress";
        SendAllAgain ["A"] in &[ActionPlace::Screen(Screen::Deliveries)], OPERATE, 16 [LINES.and_all()]
            "all again": "Count and resend all matching deliveries";
        CancelAll ["C"] in &[ActionPlace::Screen(Screen::Deliveries)], OPERATE, 0 [LINES.and_all()]
            "cancel all": "Count and cancel all matching deliveries";
    }
    Reports {
        Obligations ["O"] in ANYWHERE, VIEW, 0
            "unresolved": "List receivers not yet notified of a closing";
        NoiseReport ["<A-r>"] in ANYWHERE, VIEW, 0
            "noise": "Count notifications that led to no action";
        History ["H"] in ANYWHERE, OPERATE, 0
            "history": "Show who changed this object or all objects, and when";
    }
    Resources {
        Revoke ["d"] in &[ActionPlace::Many(Kind::Client)], Requirement::Write(Role::Admin), 14
            "revoke": "Revoke the client's key";
    }
    Move {
        NextTab ["<Tab>"] in &[ActionPlace::Event], Requirement::None, 11
            "next tab": "Go to the next tab: details, notes and history, explain";
    }
    Reports {
        LongerCharts ["t"] in &[ActionPlace::Screen(Screen::Overview)], Requirement::None, 12 [LINES.and_screen()]
            "span": "Show charts for 1 h, 24 h or 30 d";
    }
    Move {
        NextLink ["<Tab>"] in pages_with_links(), Requirement::None, 32 [LINES.and_screen()]
            "next link": "Go to the next link";
    }
    List {
        Filter ["/"] in &[ActionPlace::List], Requirement::None, 13 [LINES.and_all().and_text()]
            "filter": "Filter the list";
        Search ["/"] in &[ActionPlace::Document], Requirement::None, 34 [LINES.and_text()]
            "search": "Search the text";
        NextMatch ["n"] in &[ActionPlace::Document], Requirement::None, 0 [LINES.and_screen()]
            "next match": "Go to the next match";
        MatchBefore ["N"] in &[ActionPlace::Document], Requirement::None, 0 [LINES.and_screen()]
            "match before": "Go to the previous match";
        Mark ["<Space>"] in &[ActionPlace::Screen(Screen::Events), ActionPlace::Screen(Screen::Deliveries)], Requirement::None, 36 [LINES.and_several().without_output()]
            "mark": "Mark the row to act on several";
        MarkAll ["*"] in &[ActionPlace::Screen(Screen::Events), ActionPlace::Screen(Screen::Deliveries)], Requirement::None, 0 [LINES.and_all().without_output()]
            "mark all": "Mark all loaded rows, or none";
        Sort ["S"] in &[ActionPlace::List], Requirement::None, 38 [LINES.and_all()]
            "sort": "Sort by the next column, or reverse";
        Columns ["K"] in &[ActionPlace::List], Requirement::None, 0 [LINES.and_screen()]
            "columns": "Choose the columns of the list";
        Copy ["y"] in &[ActionPlace::List, ActionPlace::Document], Requirement::None, 50 [LINES.without_output()]
            "copy": "Copy the id or name";
        CopyAs ["Y"] in &[ActionPlace::List, ActionPlace::Document], Requirement::None, 0 [LINES.and_screen()]
            "copy as": "Choose what to copy: id, row, JSON or a command";
    }
    Console {
        Palette [":"] in ANYWHERE, Requirement::None, 60 [LINES.and_screen()]
            "palette": "Find a screen, an object or an action";
        Help ["?", "<F1>"] in EVERYWHERE, Requirement::None, 61
            "help": "Show the actions of this screen";
    }
    Move {
        Back ["<Esc>", "h", "<Left>", "<Backspace>"] in ANYWHERE, Requirement::None, 58
            "back": "Clear marks and filter, or leave the screen";
        PageBefore ["["] in ANYWHERE, Requirement::None, 0
            "page before": "Go back one page";
        Forward ["]"] in ANYWHERE, Requirement::None, 0
            "forward": "Go forward to the next page";
    }
    OnCall {
        Handover ["h"] in &[ActionPlace::Screen(Screen::OnCall)], VIEW, 15
            "handover": "Show what the next shift needs to know";
    }
    GoTo {
        GoCriticals ["!"] in ANYWHERE, Requirement::None, 0
            "criticals": "Go to the open critical events";
    }
    Move {
        Up ["k", "<Up>"] in MOVING, Requirement::None, 0 [LINES.and_screen()]
            "up": "Move up";
        Down ["j", "<Down>"] in MOVING, Requirement::None, 0 [LINES.and_screen()]
            "down": "Move down";
        Top ["gg", "<Home>"] in MOVING, Requirement::None, 0 [LINES.and_screen()]
            "top": "Go to the top";
        Bottom ["G", "<End>"] in MOVING, Requirement::None, 0 [LINES.and_screen()]
            "bottom": "Go to the bottom, and load more";
        PageUp ["<PageUp>", "<C-b>", "<C-u>"] in MOVING, Requirement::None, 0 [LINES.and_screen()]
            "page up": "Move a page up";
        PageDown ["<PageDown>", "<C-f>", "<C-d>"] in MOVING, Requirement::None, 0 [LINES.and_screen()]
            "page down": "Move a page down";
    }
    Console {
        RetryNow ["R"] in ANYWHERE, Requirement::None, 0
            "refresh": "Reconnect, or reload this screen";
        Suspend ["<C-z>"] in EVERYWHERE, Requirement::None, 0 [LINES.and_screen()]
            "suspend": "Suspend to the shell; `fg` resumes";
        ToggleMouse ["M"] in ANYWHERE, Requirement::None, 0 [LINES.and_screen()]
            "mouse": "Capture or release the mouse";
        ToggleAges ["Z"] in ANYWHERE, Requirement::None, 0 [LINES.and_screen()]
            "ages": "Show ages or times in lists";
        ToggleSplit ["|"] in &[ActionPlace::List], Requirement::None, 0 [LINES.and_screen()]
            "split": "Show or hide the selected item next to the list";
        Quit ["q", "<C-c>"] in EVERYWHERE, Requirement::None, 62 [LINES.without_output()]
            "quit": "Quit the console";
    }
    Form {
        FormNext ["<Tab>"] in FORM, Requirement::None, 9 [LINES.and_screen()]
            "next": "Go to the next field";
        FormPrevious ["<S-Tab>"] in FORM, Requirement::None, 0 [LINES.and_screen()]
            "previous": "Go to the previous field";
        FormLeave ["<Esc>"] in FORM, Requirement::None, 63
            "leave": "Leave the form; asks before discarding changes";
        FormSave ["<C-s>"] in FORM, EDIT, 10
            "save": "Save the form after confirmation";
        FormTest ["<C-t>"] in FORM, VIEW, 11
            "test": "Test or preview the unsaved form";
        FormFlip ["<A-t>"] in FORM, VIEW, 0
            "earlier test": "Show earlier tests, up to five";
        FormEvent ["<A-v>"] in FORM, VIEW, 0
            "with event": "Render and test with a stored event instead of the sample";
        FormCurl ["<A-y>"] in FORM, Requirement::None, 0
            "copy curl": "Copy the request as a curl command";
        FormBench ["<A-b>"] in FORM, VIEW, 25
            "bench": "Switch between response and request, and on narrow screens the form";
        FormScrollUp ["<A-Up>"] in FORM, VIEW, 0 [LINES.and_screen()]
            "scroll up": "Scroll the response or the request up";
        FormScrollDown ["<A-Down>"] in FORM, VIEW, 0 [LINES.and_screen()]
            "scroll down": "Scroll the response or the request down";
        FormPart ["<A-r>"] in FORM, VIEW, 0 [LINES.and_screen()]
            "part": "Show the body or the headers of the request, or a curl command";
        FormDifferences ["<A-d>"] in FORM, VIEW, 0 [LINES.and_screen()]
            "differences": "Show or hide the differences from the previous test";
        FormText ["<C-e>"] in FORM, Requirement::None, 14
            "as text": "Edit as text in $EDITOR";
        FormReveal ["<C-r>"] in FORM, Requirement::None, 22
            "reveal": "Show or hide typed secrets";
        FormReference ["<C-o>"] in FORM, Requirement::None, 24
            "reference": "Open the reference for this field";
    }
}
