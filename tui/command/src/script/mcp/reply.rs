//! Responses of the service as texts of limited size.

use bellwether_language::text::longest_prefix;
use serde_json::Value;

use crate::output;

const REPLY_BYTES: usize = 64 * 1024;

/// Returns a response as compact JSON. If it is too large, its longest list is shortened, and a
/// second text explains how to read the rest.
pub(super) fn fit_into_reply(mut response: Value) -> Vec<String> {
    let whole = compact_json(&response);
    if whole.len() <= REPLY_BYTES {
        return vec![whole];
    }
    if let Some((text, note)) = shorten_list(&mut response) {
        return vec![text, note];
    }
    let note = "The response is cut off after 64 KiB. Request less: a single object, or a narrower \
                filter.";
    vec![
        longest_prefix(&whole, REPLY_BYTES).to_owned(),
        note.to_owned(),
    ]
}

fn compact_json(value: &Value) -> String {
    output::escape_controls(&value.to_string())
}

fn shorten_list(response: &mut Value) -> Option<(String, String)> {
    let members = response.as_object_mut()?;
    // The next page would begin after the items that are cut off.
    members.remove("nextPageToken");
    members.remove("pageInfo");
    let lists = members.iter().filter(|(_, value)| value.is_array());
    let (name, _) = lists.max_by_key(|(_, list)| list.to_string().len())?;
    let name = name.clone();
    let total = response[&name].as_array().map_or(0, Vec::len);
    loop {
        let text = compact_json(response);
        let items = response[&name].as_array_mut()?;
        let count = items.len();
        if count == 0 {
            return None;
        }
        if text.len() <= REPLY_BYTES {
            let note = format!(
                "Only the first {count} of {total} `{name}` fit into 64 KiB. For the rest, request \
                 pages of at most {count} (`pageSize`, or `limit` of `pageInput`), or narrow the \
                 request."
            );
            return Some((text, note));
        }
        items.truncate((count * REPLY_BYTES / text.len()).min(count - 1));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_list_is_shortened_with_a_note_and_without_page_token() {
        let item = json!({"summary": "x".repeat(1_000)});
        let items = vec![item; 200];
        let texts = fit_into_reply(json!({"results": items, "nextPageToken": "t"}));
        let shown: Value = serde_json::from_str(&texts[0]).unwrap();
        let count = shown["results"].as_array().unwrap().len();
        assert!((50..65).contains(&count), "{count}");
        assert!(texts[0].len() <= REPLY_BYTES);
        assert!(shown["nextPageToken"].is_null());
        let note = format!("Only the first {count} of 200 `results` fit");
        assert!(texts[1].starts_with(&note), "{}", texts[1]);
    }

    #[test]
    fn large_object_is_cut_off() {
        let texts = fit_into_reply(json!({"results": [{"body": "\u{e9}".repeat(100_000)}]}));
        assert!(texts[0].len() <= REPLY_BYTES && texts[0].len() > REPLY_BYTES - 4);
        assert!(texts[1].contains("cut off"));
    }
}
