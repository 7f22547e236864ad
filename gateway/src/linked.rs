//! Browser pages: the overview and the targets of links in messages, as HTML without scripts,
//! loading only the icon.

use std::fmt::Write as _;

use bellwether_language::text::enum_word;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::docs::{ICON_LINK, escape_html};

/// Content security policy: inline styles, and forms to this service only.
pub(crate) const POLICY: &str = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; \
                                 form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const SEVERITIES: [&str; 5] = [
    "SEVERITY_CRITICAL",
    "SEVERITY_ERROR",
    "SEVERITY_WARNING",
    "SEVERITY_INFO",
    "SEVERITY_DEBUG",
];

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:1.5rem auto;\
    padding:0 1rem;color:#1c2024;background:#fff;overflow-wrap:anywhere}h1{font-size:1.4rem;\
    margin:.5rem 0}h2{font-size:1.05rem;margin:1.8rem 0 .4rem;border-bottom:1px solid #ccc}\
    .state span{display:inline-block;border-radius:.3rem;padding:.05rem .5rem;margin-right:.4rem;\
    border:1px solid #8888}.critical{background:#b3121d;color:#fff}.error{background:#c2410c;\
    color:#fff}.warning{background:#facc15;color:#1c2024}.info{background:#0b5cad;color:#fff}\
    .debug{background:#64748b;color:#fff}.closed{background:#166534;color:#fff}\
    table{border-collapse:collapse;width:100%}td{border-top:1px solid #ddd;padding:.3rem .8rem .3rem \
    0;vertical-align:top}tr:first-child td{border-top:0}td:first-child{white-space:nowrap;color:#555;width:1%}pre{white-space:\
    pre-wrap;background:#f4f4f5;padding:.6rem;border-radius:.3rem;overflow:auto}.notice{border-left:\
    .3rem solid #166534;padding:.4rem .8rem;background:#f0fdf4}.refused{border-color:#b3121d;\
    background:#fef2f2}form{margin:1rem 0;padding:.8rem;border:1px solid #ccc;border-radius:.4rem}\
    input,button{font:inherit;padding:.35rem .6rem;margin:.2rem .4rem .2rem 0}footer{color:#666;\
    font-size:.85rem;margin:2rem 0}@media(prefers-color-scheme:dark){body{color:#e6e6e6;\
    background:#16181b}td:first-child,footer{color:#aaa}pre{background:#23262b}td,h2,form{\
    border-color:#444}.notice{background:#12251a}.refused{background:#2d1517}a{color:#7ab7ff}}";

const DOCUMENTS: &str = "<p><a href=\"/docs\">Reference</a> &middot; <a href=\"/openapi.json\">\
                         OpenAPI</a></p>";

#[derive(Debug)]
pub(crate) struct Notice {
    text: String,
    is_refusal: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Entry {
    #[default]
    Key,
    /// A key, or a sign-in that returns to this path.
    SignIn(String),
    SignedIn,
}

impl Notice {
    pub(crate) fn for_acknowledgement(acknowledged: bool) -> Self {
        let done = if acknowledged {
            "Acknowledged."
        } else {
            "The acknowledgement was removed."
        };
        Self {
            text: done.to_owned(),
            is_refusal: false,
        }
    }

    pub(crate) fn for_failure(why: &str) -> Self {
        Self {
            text: format!("Nothing was changed: {why}"),
            is_refusal: true,
        }
    }
}

/// Renders the page for `{event, timeline}`, `{group, members}` or `{overview, open, more}`, as in
/// REST.
pub(crate) fn render_page(found: &Value, notice: Option<&Notice>, entry: Entry) -> String {
    let mut out = LinkedPageWriter::new(entry);
    let title = match (&found["group"], &found["overview"]) {
        (Value::Object(_), _) => out.write_group(found),
        (_, Value::Object(_)) => out.write_service(found),
        _ => out.write_event(found),
    };
    let notice = notice.map(|notice| {
        let class = if notice.is_refusal {
            "notice refused"
        } else {
            "notice"
        };
        format!(
            "<p class=\"{class}\" role=\"status\">{}</p>",
            isolate_direction(&notice.text)
        )
    });
    out.end_page();
    html_page(
        &title,
        &format!("{}{}", notice.unwrap_or_default(), out.html),
    )
}

/// Renders the page of a contact's acknowledgement link: a button, or a confirmation.
pub(crate) fn acknowledgement_page(found: &Value, is_done: bool) -> String {
    let (name, by) = (
        json_text(&found["eventName"]),
        json_text(&found["acknowledgedBy"]),
    );
    let severity = short_name(&found["severity"], "SEVERITY_");
    let mut html = format!(
        "<h1>{}</h1><p class=\"state\"><span class=\"{severity}\">{severity}</span></p><p>{}</p>",
        isolate_direction(&name),
        isolate_direction(&json_text(&found["summary"])),
    );
    let others = match found["otherCount"].as_i64().unwrap_or_default() {
        0 => String::new(),
        1 => "1 more open event in its group".to_owned(),
        count => format!("{count} more open events in its group"),
    };
    if by.is_empty() {
        if !others.is_empty() {
            let _ = write!(html, "<p>This also acknowledges {others}.</p>");
        }
        let _ = write!(
            html,
            "<p>No one has responded yet.</p><form method=\"post\"><button>Acknowledge as {}</button>\
             </form>",
            isolate_direction(&json_text(&found["contact"]))
        );
    } else {
        let done = match (is_done, others.as_str()) {
            (true, "") => "Acknowledged".to_owned(),
            (true, others) => format!("Acknowledged with {others}"),
            (false, _) => "Acknowledged already".to_owned(),
        };
        let _ = write!(
            html,
            "<p class=\"notice\" role=\"status\">{done}, by {}.</p>",
            isolate_direction(&by)
        );
    }
    html_page(&name, &html)
}

pub(crate) fn welcome_page(entry: Entry) -> String {
    let mut out = LinkedPageWriter::new(entry);
    out.html
        .push_str("<h1>Bellwether</h1><p>Open events, for signed-in users and API keys.</p>");
    out.write_form(&[("show", "Show")]);
    out.html.push_str(DOCUMENTS);
    html_page("Bellwether", &out.html)
}

/// Renders an error page, with a key form if `entry` is set.
pub(crate) fn error_page(why: &str, entry: Option<Entry>) -> String {
    let helps = entry.is_some();
    let mut out = LinkedPageWriter::new(entry.unwrap_or_default());
    let _ = write!(
        out.html,
        "<h1>This page is not available</h1><p class=\"notice refused\">{}</p>",
        isolate_direction(why)
    );
    if helps {
        out.write_form(&[("show", "Show")]);
    }
    html_page("Bellwether", &out.html)
}

fn html_page(title: &str, body: &str) -> String {
    let title = escape_html(title);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><meta name=\"robots\" content=\"noindex\"><title>{title}\
         </title>{ICON_LINK}<style>{STYLE}</style></head><body><main>{body}</main><footer>Bellwether. Times are \
         UTC.</footer></body></html>"
    )
}

#[derive(Debug)]
struct LinkedPageWriter {
    html: String,
    entry: Entry,
}

impl LinkedPageWriter {
    fn new(entry: Entry) -> Self {
        let html = String::new();
        Self { html, entry }
    }

    fn end_page(&mut self) {
        if self.entry == Entry::SignedIn {
            self.html.push_str(
                "<form method=\"post\" action=\"/sign-out\"><button>Sign out</button></form>",
            );
        }
    }

    fn write_event(&mut self, found: &Value) -> String {
        let (event, occurrence) = (&found["event"], &found["event"]["occurrences"][0]);
        let acknowledged = occurrence["acknowledged"] == true;
        let title = self.write_head(event, occurrence);
        self.write_acknowledge_form(acknowledged, occurrence["status"] == "STATUS_CLOSED");
        self.write_table(&[
            ("Event", json_text(&event["name"])),
            ("Type", json_text(&occurrence["type"])),
            ("First seen", format_time(&occurrence["startTime"])),
            ("Last seen", format_time(&occurrence["lastSeen"])),
            ("Closed", format_time(&occurrence["closeTime"])),
            ("Sent", format_times(&occurrence["count"])),
            ("Occurrence", json_text(&occurrence["number"])),
        ]);
        self.write_pairs("Dimensions", &event["dimensions"]);
        self.write_block("Details", &json_text(&occurrence["body"]));
        self.write_pairs("Metadata", &occurrence["metadataFields"]);
        let notes = list_rows(&occurrence["annotations"], |note| {
            let who = format!(
                "{} {}",
                format_time(&note["createTime"]),
                json_text(&note["author"])
            );
            (who, json_text(&note["annotation"]))
        });
        self.write_rows("Notes", &notes);
        let moments = list_rows(&found["timeline"], |moment| {
            let mut what = json_text(&moment["text"]);
            for (word, of) in [("by", "author"), ("rule", "ruleName")] {
                let of = json_text(&moment[of]);
                if !of.is_empty() {
                    let _ = write!(what, ", {word} {of}");
                }
            }
            (format_time(&moment["time"]), what)
        });
        self.write_rows("What happened", &moments);
        title
    }

    fn write_head(&mut self, event: &Value, occurrence: &Value) -> String {
        let summary = json_text(&occurrence["summary"]);
        let title = if summary.is_empty() {
            json_text(&event["name"])
        } else {
            summary
        };
        let severity = short_name(&occurrence["severity"], "SEVERITY_");
        let status = short_name(&occurrence["status"], "STATUS_");
        let shown = if status == "closed" {
            "closed"
        } else {
            severity.as_str()
        };
        let _ = write!(
            self.html,
            "<h1>{}</h1><p class=\"state\"><span class=\"{shown}\">{severity}</span><span>{status}\
             </span>{}</p>",
            isolate_direction(&title),
            if occurrence["acknowledged"] == true {
                "<span>acknowledged</span>"
            } else {
                ""
            }
        );
        title
    }

    fn write_service(&mut self, found: &Value) -> String {
        let overview = &found["overview"];
        let open = |severity: &str| {
            let count = &overview["openBySeverity"][severity];
            (
                short_name(&severity.into(), "SEVERITY_"),
                count.as_i64().unwrap_or(0),
            )
        };
        let counts = SEVERITIES.map(open);
        let all: i64 = counts.iter().map(|(_, count)| count).sum();
        let title = format!("{all} open");
        let _ = write!(self.html, "<h1>{title}</h1><p class=\"state\">");
        for (severity, count) in counts.iter().filter(|(_, count)| *count > 0) {
            let _ = write!(
                self.html,
                "<span class=\"{severity}\">{count} {severity}</span>"
            );
        }
        self.html.push_str("</p>");
        let destinations = list_rows(&overview["destinations"], |it| {
            let state = short_name(&it["health"]["state"], "");
            let waiting = it["waitingCount"].as_i64().unwrap_or(0);
            let dead = it["deadCount"].as_i64().unwrap_or(0);
            (
                json_text(&it["destinationName"]),
                format!("{state}, {waiting} waiting, {dead} dead"),
            )
        });
        self.write_rows("Destinations", &destinations);
        let open = found["open"].as_array().into_iter().flatten();
        let mut open = open.peekable();
        if open.peek().is_some() {
            self.html.push_str("<h2>Open events</h2><table>");
        }
        for event in open {
            let occurrence = &event["occurrences"][0];
            let summary = json_text(&occurrence["summary"]);
            let shown = if summary.is_empty() {
                json_text(&event["name"])
            } else {
                summary
            };
            let severity = short_name(&occurrence["severity"], "SEVERITY_");
            let id = json_text(&occurrence["id"]);
            let _ = write!(
                self.html,
                "<tr><td class=\"state\"><span class=\"{severity}\">{severity}</span><td>\
                 <a href=\"/events/{}\">{}</a><td>{}</tr>",
                escape_html(&id),
                isolate_direction(&shown),
                format_time(&occurrence["lastSeen"])
            );
        }
        self.html.push_str("</table>");
        if found["more"] == true {
            self.html.push_str("<p>&hellip; and more.</p>");
        }
        self.write_form(&[("show", "Show again")]);
        self.html.push_str(DOCUMENTS);
        title
    }

    fn write_group(&mut self, found: &Value) -> String {
        let group = &found["group"];
        let shared = list_rows(&group["by"], |field| {
            let value = field["value"]
                .as_str()
                .map_or("none".to_owned(), str::to_owned);
            (json_text(&field["field"]), value)
        });
        let of: Vec<_> = shared
            .iter()
            .map(|(field, value)| format!("{field}={value}"))
            .collect();
        let open = json_text(&group["openCount"]);
        let title = if of.is_empty() {
            format!(
                "{open} open events of rule {}",
                json_text(&group["ruleName"])
            )
        } else {
            format!("{open} open: {}", of.join(", "))
        };
        let state = short_name(&group["state"], "");
        let _ = write!(
            self.html,
            "<h1>{}</h1><p class=\"state\"><span>{state}</span>{}</p>",
            isolate_direction(&title),
            if group["acknowledged"] == true {
                "<span>acknowledged</span>"
            } else {
                ""
            }
        );
        self.write_acknowledge_form(group["acknowledged"] == true, state == "over");
        self.write_table(&[
            ("Rule", json_text(&group["ruleName"])),
            ("Joined", format_times(&group["memberCount"])),
            ("Messages", json_text(&group["messageCount"])),
            ("First message", format_time(&group["createTime"])),
            ("Last message", format_time(&group["lastMessageTime"])),
            ("Ended", format_time(&group["endTime"])),
        ]);
        let members = list_rows(&found["members"], |member| {
            let severity = short_name(&member["severity"], "SEVERITY_");
            let status = short_name(&member["status"], "STATUS_");
            let summary = json_text(&member["summary"]);
            let what = if summary.is_empty() {
                json_text(&member["eventName"])
            } else {
                summary
            };
            (format!("{severity}, {status}"), what)
        });
        self.write_rows("Events", &members);
        let more = found["nextPageToken"]
            .as_str()
            .is_some_and(|token| !token.is_empty());
        if more {
            self.html.push_str("<p>&hellip; and more.</p>");
        }
        title
    }

    fn write_table(&mut self, rows: &[(&str, String)]) {
        self.html.push_str("<table>");
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(
                self.html,
                "<tr><td>{name}<td>{}</tr>",
                isolate_direction(value)
            );
        }
        self.html.push_str("</table>");
    }

    fn write_rows(&mut self, title: &str, rows: &[(String, String)]) {
        if rows.is_empty() {
            return;
        }
        let _ = write!(self.html, "<h2>{title}</h2><table>");
        for (name, value) in rows {
            let _ = write!(
                self.html,
                "<tr><td>{}<td>{}</tr>",
                isolate_direction(name),
                isolate_direction(value)
            );
        }
        self.html.push_str("</table>");
    }

    fn write_pairs(&mut self, title: &str, pairs: &Value) {
        let pairs = pairs.as_object().into_iter().flatten();
        let pairs: Vec<_> = pairs
            .map(|(name, value)| (name.clone(), json_text(value)))
            .collect();
        self.write_rows(title, &pairs);
    }

    fn write_block(&mut self, title: &str, whole: &str) {
        if !whole.is_empty() {
            let _ = write!(
                self.html,
                "<h2>{title}</h2><pre>{}</pre>",
                isolate_direction(whole)
            );
        }
    }

    fn write_acknowledge_form(&mut self, acknowledged: bool, is_over: bool) {
        match (is_over, acknowledged) {
            (true, _) => {}
            (false, true) => self.write_form(&[("unacknowledge", "Remove the acknowledgement")]),
            (false, false) => self.write_form(&[("acknowledge", "Acknowledge")]),
        }
    }

    fn write_form(&mut self, actions: &[(&str, &str)]) {
        if let Entry::SignIn(path) = &self.entry {
            let path = utf8_percent_encode(path, NON_ALPHANUMERIC);
            let _ = write!(
                self.html,
                "<p><a href=\"/sign-in?to={path}\">Sign in</a>, or use an API key.</p>"
            );
        }
        self.html.push_str("<form method=\"post\">");
        if self.entry != Entry::SignedIn {
            self.html.push_str(
                "<label>Key <input type=\"password\" name=\"key\" required \
                 autocomplete=\"current-password\" spellcheck=\"false\"></label>",
            );
        }
        for (action, label) in actions {
            let _ = write!(
                self.html,
                "<button name=\"do\" value=\"{action}\">{label}</button>"
            );
        }
        self.html.push_str("</form>");
    }
}

/// Isolates a text, so that its direction does not affect the surrounding text.
fn isolate_direction(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape_html(text))
}

fn list_rows(list: &Value, row: impl Fn(&Value) -> (String, String)) -> Vec<(String, String)> {
    list.as_array().into_iter().flatten().map(row).collect()
}

fn json_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn short_name(value: &Value, prefix: &str) -> String {
    enum_word(&json_text(value), prefix)
}

fn format_times(count: &Value) -> String {
    match json_text(count).as_str() {
        "" => String::new(),
        "1" => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Formats a time given in milliseconds since 1970 or as RFC 3339; empty if there is none.
fn format_time(value: &Value) -> String {
    let text = json_text(value);
    let of_ms = || {
        let ms = text.parse().ok()?;
        jiff::Timestamp::from_millisecond(ms).ok()
    };
    let moment = of_ms().or_else(|| text.parse().ok());
    let shown = moment.map(|it| it.strftime("%Y-%m-%d %H:%M:%S").to_string());
    shown.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample_event(summary: &str) -> Value {
        json!({
            "event": {
                "name": "disk", "dimensions": {"host": "db-1"},
                "occurrences": [{
                    "severity": "SEVERITY_ERROR", "status": "STATUS_OPEN", "acknowledged": false,
                    "summary": summary, "startTime": "1769846400000", "count": "2", "number": 1,
                    "metadataFields": {"used": 97.5, "list": ["<b>"]},
                }],
            },
            "timeline": [{"time": "1769846400000", "text": "opened", "author": ""}],
        })
    }

    #[test]
    fn event_page_shows_escaped_event_fields() {
        let page = render_page(
            &sample_event("</title><script>alert(1)</script>\" onload=x"),
            None,
            Entry::Key,
        );
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        for part in [
            "&lt;script&gt;",
            "2026-01-31 08:00:00",
            "2 times",
            "db-1",
            "97.5",
            "opened",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.contains("value=\"acknowledge\""), "{page}");
    }

    #[test]
    fn closed_event_has_no_acknowledge_form() {
        let mut found = sample_event("x");
        found["event"]["occurrences"][0]["status"] = "STATUS_CLOSED".into();
        assert!(!render_page(&found, None, Entry::Key).contains("<form"));
    }

    #[test]
    fn group_page_lists_its_members() {
        let found = json!({
            "group": {
                "ruleName": "page", "state": "OPEN", "openCount": 2, "memberCount": 3,
                "by": [{"field": "host", "value": "<i>"}], "createTime": "2026-01-31T08:00:00Z",
            },
            "members": [{"eventName": "disk", "severity": "SEVERITY_INFO", "status": "STATUS_OPEN"}],
            "nextPageToken": "x",
        });
        let page = render_page(&found, Some(&Notice::for_acknowledgement(true)), Entry::Key);
        for part in [
            "2 open: host=&lt;i&gt;",
            "info, open",
            "and more",
            "Acknowledged.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn overview_shows_and_links_open_events() {
        let found = json!({
            "overview": {
                "openBySeverity": {"SEVERITY_CRITICAL": 2, "SEVERITY_INFO": 1},
                "destinations": [{
                    "destinationName": "hook", "waitingCount": 7, "deadCount": 0,
                    "health": {"state": "FAILING"},
                }],
            },
            "open": [{"name": "disk", "occurrences": [{
                "id": "a=:1", "severity": "SEVERITY_CRITICAL", "summary": "<b>", "lastSeen": "0",
            }]}],
            "more": true,
        });
        let page = render_page(&found, None, Entry::Key);
        for part in [
            "3 open",
            "2 critical",
            "failing, 7 waiting, 0 dead",
            "href=\"/events/a=:1\"",
            "&lt;b&gt;",
            "and more",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(welcome_page(Entry::Key).contains("/docs"));
    }

    #[test]
    fn key_is_requested_only_when_it_helps() {
        assert!(error_page("a key is required", Some(Entry::Key)).contains("type=\"password\""));
        assert!(!error_page("it is gone", None).contains("<form"));
    }

    #[test]
    fn page_shows_sign_out_only_if_signed_in() {
        let shown = render_page(&sample_event("x"), None, Entry::SignedIn);
        assert!(
            !shown.contains("password") && !shown.contains("/sign-in"),
            "{shown}"
        );
        assert!(
            shown.contains("/sign-out") && shown.contains("acknowledge"),
            "{shown}"
        );
        let signed_out = render_page(
            &sample_event("x"),
            None,
            Entry::SignIn("/events/a=:1".to_owned()),
        );
        assert!(
            signed_out.contains("href=\"/sign-in?to=%2Fevents%2Fa%3D%3A1\""),
            "{signed_out}"
        );
        assert!(
            signed_out.contains("password") && !signed_out.contains("/sign-out"),
            "{signed_out}"
        );
        assert!(!welcome_page(Entry::Key).contains("/sign-in"));
    }
}
