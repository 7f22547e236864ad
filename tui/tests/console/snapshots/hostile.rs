//! Hostile text from external sources, and checks for every screen that shows it.

use bellwether_proto::cloud;
use ratatui::buffer::Buffer;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::service::event;

/// Names and texts that break layouts: tabs, line breaks, escape sequences, bidirectional controls,
/// zero-width, wide and combining characters, right-to-left scripts, and long text.
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

pub(super) const SCENES: [&str; 22] = [
    "1",
    "2",
    "2<Enter>",
    "2x",
    "2<Enter><Tab>",
    "3",
    "3<Enter>",
    "4",
    "4<Enter>",
    "5",
    "5jj<Enter>",
    "6",
    "6<Enter>",
    "5jje<Tab><Tab><Enter>",
    "5jjd",
    ":rule",
    "4t",
    "O",
    "6A",
    "5jjpv",
    "5jje<Tab><Tab><Tab>x<C-s>",
    "3jjjjjjjjjj<Enter>",
];

/// Starts a service with hostile text everywhere except in names of definitions, where it is
/// rejected.
pub(super) async fn service() -> Service {
    let service = Service::refused_with(TEXTS[1]).await;
    let wide = "宽".repeat(80);
    let texts: Vec<&str> = TEXTS.into_iter().chain([wide.as_str()]).collect();
    for (number, text) in texts.iter().enumerate() {
        let name = format!("hostile-{number}");
        let kind = json!({"event": {"filter": "severity=error"}});
        let trigger = json!({"name": name, "description": text, "type": kind});
        service.create("Trigger", &trigger).await;
        service.destination(&name).await;
        let rule = json!({
            "name": name,
            "description": text,
            "message": text,
            "enabled": number == 0,
            "triggerNames": [name],
            "destinationNames": [name],
        });
        service.create("Rule", &rule).await;
    }
    // Remove control characters from names, where the service rejects them.
    let events = texts.iter().enumerate().map(|(number, text)| cloud::Event {
        name: text.replace(char::is_control, ""),
        r#type: (*text).to_owned(),
        dimensions: [(text.replace(char::is_control, ""), (*text).to_owned())].into(),
        severity: Severity::Error.into(),
        ..event(number.try_into().unwrap(), text)
    });
    service.send(events.collect()).await;
    service.settle(texts.len()).await;
    service
}

/// Checks that no cell contains a character that a terminal would execute, hide or reorder, and
/// that no line is wider than the screen.
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
