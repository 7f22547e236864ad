//! Maps field names of other products to the names of this product.

const LABELS: [&str; 6] = [
    "labels.",
    "label.",
    "tags.",
    "tag.",
    "commonLabels.",
    "groupLabels.",
];

/// Returns this product's name for a field of another product; `None` if unknown.
pub fn local_field_name(name: &str) -> Option<String> {
    let known = match name {
        "alertname" | "alert" | "alert_name" => "name",
        "annotations.summary" | "title" | "message" => "summary",
        "annotations.description" | "description" | "details" => "body",
        "startsAt" | "activeAt" => "startTime",
        "state" => "status",
        "level" | "priority" | "urgency" => "severity",
        _ => "",
    };
    if !known.is_empty() {
        return Some(known.to_owned());
    }
    let label = LABELS.iter().find_map(|before| name.strip_prefix(before));
    if let Some(label) = label.filter(|label| !label.is_empty()) {
        return Some(local_field_name(label).unwrap_or_else(|| label.to_owned()));
    }
    // These fields have no members, so `status.phase` is `status`.
    let (field, _) = name.split_once('.')?;
    ["name", "severity", "status", "summary", "body"]
        .contains(&field)
        .then(|| field.to_owned())
}
