//! Text from outside at its worst, and what must hold of every screen that shows it.

use ratatui::buffer::Buffer;
use unicode_width::UnicodeWidthStr;

use super::*;

/// Names and texts that break screens: tabs, line ends, escapes, bidi, zero width, what is wide,
/// what joins, what runs from right to left, and what is long.
const TEXTS: [&str; 8] = [
    "tab\there\nand a line",
    "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31mred",
    "abc\u{202e}cba\u{2066}\u{200f}",
    "zero\u{200b}width\u{feff}\u{ad}join",
    "数据库磁盘已满警告服务器故障",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ☠️ e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}",
    "السيرفر ممتلئ تماما שרת",
    "a̶̧̛͕͎̩̺̰̬̖̫͎̤͓͇̙̎̈́̂͐͒̎̑̊͌̉̚͠͝b",
];

pub(super) const SCENES: [(&str, &str); 23] = [
    ("overview", "1"),
    ("events", "2"),
    ("event", "2<Enter>"),
    ("explain", "2x"),
    ("notes", "2<Enter><Tab>"),
    ("triggers", "3"),
    ("trigger", "3<Enter>"),
    ("destinations", "4"),
    ("destination", "4<Enter>"),
    ("rules", "5"),
    ("rule", "5jj<Enter>"),
    ("deliveries", "6"),
    ("delivery", "6<Enter>"),
    ("form", "5jje<Tab><Tab><Enter>"),
    ("confirm", "5jjd"),
    ("palette", ":rule"),
    ("test", "4t"),
    ("map", "8"),
    ("obligations", "O"),
    ("bulk", "6A"),
    ("report_event", "5jjpv"),
    ("save", "5jje<Tab><Tab><Tab>x<C-s>"),
    ("wide", "3jjjjjjjjjj<Enter>"),
];

/// A service all of whose texts are hostile.
pub(super) fn service() -> Service {
    let service = Service::start();
    let wide = "宽".repeat(200);
    let texts: Vec<&str> = TEXTS.into_iter().chain([wide.as_str()]).collect();
    for (number, text) in texts.iter().enumerate() {
        let plain = event(number.try_into().unwrap(), Severity::Error, text, text);
        service.event(v1::Event {
            name: (*text).to_owned(),
            r#type: (*text).to_owned(),
            ..plain
        });
    }
    let failing = v1::destination_health::State::Failing;
    let mut state = service.state();
    for text in &texts {
        let name = || (*text).to_owned();
        let own = trigger();
        let described = v1::Trigger {
            name: name(),
            description: name(),
            tags: vec![name()],
            rule_names: vec![name()],
            ..own
        };
        state.triggers.insert(name(), described);
        let url = format!("https://{text}/");
        let described = v1::Destination {
            description: name(),
            tags: vec![name()],
            rule_names: vec![name()],
            ..destination(text, &url, failing, text)
        };
        state.destinations.insert(name(), described);
        let rule = v1::Rule {
            name: name(),
            description: name(),
            message: name(),
            trigger_names: texts.iter().map(|text| (*text).to_owned()).collect(),
            destination_names: vec![name(), name()],
            etag: "1".to_owned(),
            ..v1::Rule::default()
        };
        state.rules.insert(name(), rule);
    }
    state.deliveries = texts
        .iter()
        .enumerate()
        .map(|(number, text)| v1::Delivery {
            rule_name: (*text).to_owned(),
            destination_name: (*text).to_owned(),
            last_error: (*text).to_owned(),
            ..delivery(99 - number, v1::delivery::State::Dead)
        })
        .collect();
    drop(state);
    service
}

/// No cell holds what a terminal would act on, hide or reorder by, and no line is wider than the
/// screen.
pub(super) fn check(buffer: &Buffer) {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let symbol = buffer[(x, y)].symbol();
            let hidden = symbol.chars().find(|char| is_hidden(*char, symbol));
            assert_eq!(hidden, None, "{symbol:?} at {x},{y}");
            let width = u16::try_from(symbol.width()).unwrap();
            assert!(x + width <= area.right(), "{symbol:?} at {x},{y}");
            x += width.max(1);
        }
    }
}

fn is_hidden(char: char, symbol: &str) -> bool {
    let joins = matches!(char, '\u{200d}' | '\u{fe0f}') && symbol.width() == 2;
    let acts = char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}');
    acts && !joins
}
