//! A token is only valid for the list that issued it. Any other text is refused.
#![no_main]

use bellwether_backend::ops::page::TokenScope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let scope = TokenScope::new("deliveries").with_field("states", ["dead"]);
    let other = TokenScope::new("deliveries").with_field("states", ["dead", ""]);
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(Some(key)) = scope.last_key(text)
    {
        assert_eq!(scope.encode_token(&key), text);
    }
    let token = scope.encode_token(input);
    assert_eq!(
        scope.last_key(&token).ok().flatten().as_deref(),
        Some(input)
    );
    assert!(other.last_key(&token).is_err());
});
