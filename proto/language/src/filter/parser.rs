//! Parses the tokens of a filter into a condition.
//!
//! ```text
//! filter = either ;
//! either = all , { ( "or" | "||" ) , all } ;
//! all    = term , { [ "and" | "&&" ] , term | "," , field , compare } ;
//! term   = ( "not" | "-" | "!" ) , term | "(" , either , ")" | "has:" field | field , compare | word ;
//! compare = sign , value | "in" , "(" , value , { [ "," ] , value } , ")" ;
//! ```

use jiff::Timestamp;
use regex::RegexBuilder;

use super::{
    BYTES_MAX, Clause, DEPTH_MAX, FilterError, Literal, ParsedFilter, Positions, TimeReference,
    lexer::{Operator, Piece, PositionedToken, Token, Word, tokenize},
    time::parse_time,
};

pub(super) const HAS: &str = "has:";
/// Maximum memory of a pattern that is compiled for checking; larger patterns are rejected where
/// they are used.
const PATTERN_MEMORY_BYTES_MAX: usize = 1024 * 1024;
const WORDS: [&str; 3] = ["and", "or", "not"];

pub(super) fn parse(text: &str, now: Option<&TimeReference>) -> Result<ParsedFilter, FilterError> {
    if text.len() > BYTES_MAX {
        let bytes = text.len();
        let message = format!("the filter is {bytes} bytes; the limit is {BYTES_MAX}");
        return Err(FilterError { at: 0, message });
    }
    let tokens = &tokenize(text)?;
    let is_whole = |(_, token): &PositionedToken| *token == Token::Operator(Operator::MatchesWhole);
    let mut parser = Parser {
        text,
        has_whole: tokens.iter().any(is_whole),
        tokens,
        end: text.chars().count(),
        now,
        depth: 0,
        parts: Vec::new(),
        is_either: false,
    };
    let (clause, positions) = parser.parse_or()?;
    let (parts, is_either) = (parser.parts, parser.is_either);
    match parser.tokens.first() {
        None => Ok(ParsedFilter {
            clause,
            positions,
            parts,
            is_either,
        }),
        Some((at, token)) => Err(error_at_position(
            *at,
            format!("unexpected {}", describe_token(token)),
        )),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [PositionedToken],
    /// Whether the filter matches whole values against patterns, as Prometheus matchers do.
    has_whole: bool,
    end: usize,
    now: Option<&'a TimeReference>,
    depth: usize,
    /// Texts of the conditions that `and` joins at the top level.
    parts: Vec<String>,
    is_either: bool,
}

type ParsedTerm = (Clause, Positions);

impl<'a> Parser<'a> {
    fn parse_or(&mut self) -> Result<ParsedTerm, FilterError> {
        let at = self.position();
        let first = self.parse_and()?;
        let mut clauses = vec![first];
        while self.consume_joint("or", &Token::Or) {
            clauses.push(self.parse_and()?);
        }
        if self.depth == 0 && clauses.len() > 1 {
            self.parts = vec![self.source_text(at)];
            self.is_either = true;
        }
        Ok(join_clauses(clauses, Clause::Or))
    }

    fn parse_and(&mut self) -> Result<ParsedTerm, FilterError> {
        let mut clauses = Vec::new();
        loop {
            let at = self.position();
            clauses.push(self.parse_term()?);
            if self.depth == 0 {
                self.parts.push(self.source_text(at));
            }
            let is_joined = self.consume_joint("and", &Token::And) || self.consume_comma();
            let goes_on = match self.tokens.first() {
                None
                | Some((
                    _,
                    Token::Close | Token::Comma | Token::And | Token::Or | Token::Operator(_),
                )) => false,
                Some((_, Token::Word(word))) => !is_word(word, "or"),
                Some((_, Token::Open | Token::Minus | Token::Not)) => true,
            };
            if !is_joined && !goes_on {
                return Ok(join_clauses(clauses, Clause::And));
            }
        }
    }

    fn parse_term(&mut self) -> Result<ParsedTerm, FilterError> {
        let at = self.position();
        // A negated group is two clauses deep, so this also bounds the depth of the result.
        if self.depth >= DEPTH_MAX {
            let message = format!("is nested more than {DEPTH_MAX} clauses deep");
            return Err(error_at_position(at, message));
        }
        self.depth += 1;
        let read = self.parse_nested_term(at);
        self.depth -= 1;
        read
    }

    fn parse_nested_term(&mut self, at: usize) -> Result<ParsedTerm, FilterError> {
        if self.consume_word("not") {
            return self.parse_negation(at);
        }
        match self.next() {
            Some(Token::Minus | Token::Not) => self.parse_negation(at),
            Some(Token::Open) => {
                let inside = self.parse_or()?;
                match self.next() {
                    Some(Token::Close) => Ok(inside),
                    _ => Err(error_at_position(at, "this bracket is never closed".into())),
                }
            }
            Some(Token::Word(word)) => self.parse_word(word, at),
            Some(token) => Err(error_at_position(
                at,
                format!("unexpected {}", describe_token(token)),
            )),
            None => Err(error_at_position(at, "a condition is missing here".into())),
        }
    }

    fn parse_negation(&mut self, at: usize) -> Result<ParsedTerm, FilterError> {
        let (clause, positions) = self.parse_term()?;
        Ok(negate((clause, positions), at))
    }

    /// Parses a term that begins with a word: a comparison, `has:`, or a search.
    fn parse_word(&mut self, word: &'a Word, at: usize) -> Result<ParsedTerm, FilterError> {
        match self.tokens.first() {
            Some((_, Token::Operator(operator))) => {
                let field = field_name(word, at)?;
                self.tokens = &self.tokens[1..];
                let is_quoted = word.quoted;
                return self.parse_comparison((field, is_quoted), *operator, at);
            }
            Some((_, Token::Word(next)))
                if is_word(next, "in") && matches!(self.tokens.get(1), Some((_, Token::Open))) =>
            {
                let field = field_name(word, at)?;
                self.tokens = &self.tokens[2..];
                return self.parse_in_list(field, at);
            }
            _ => {}
        }
        if WORDS.iter().any(|known| is_word(word, known)) {
            let text = word_text(word);
            let message =
                format!("a condition is missing before `{text}`; quote it to search for it");
            return Err(error_at_position(at, message));
        }
        let has = match &word.pieces[..] {
            [Piece::Text(text), ..] => text.strip_prefix(HAS).filter(|_| !word.quoted),
            _ => None,
        };
        match has {
            Some("") => Err(error_at_position(at, "`has:` needs a field".into())),
            Some(field) => Ok(single_clause(Clause::Exists(resolve_alias(field)), at)),
            None => match split_foreign_operator(&word_text(word)).filter(|_| word.has_colon) {
                Some((field, value)) => {
                    let part = value.trim_matches('*');
                    let message = format!(
                        "`{field}:{value}` compares nothing: write `{field}={value}`, \
                         `{field}=*{part}*` for text that contains it, or quote it to search for the text"
                    );
                    Err(error_at_position(at, message))
                }
                None => search_clause(word, at),
            },
        }
    }

    fn parse_in_list(&mut self, field: String, at: usize) -> Result<ParsedTerm, FilterError> {
        let mut values = Vec::new();
        loop {
            let place = self.position();
            match self.next() {
                Some(Token::Word(word)) => {
                    if word.pieces.contains(&Piece::Star) {
                        let message = "a list cannot contain `*`; quote it, or use `=` and `or`";
                        return Err(error_at_position(place, message.into()));
                    }
                    values.push(self.parse_literal(&field, word, place)?);
                }
                Some(Token::Minus) => match self.next() {
                    Some(Token::Word(word)) => {
                        let text = format!("-{}", word_text(word));
                        let value = word_to_literal(&field, &text, word.quoted, self.now);
                        values.push(value.map_err(|message| error_at_position(place, message))?);
                    }
                    _ => {
                        return Err(error_at_position(
                            place,
                            "a list value is missing here".into(),
                        ));
                    }
                },
                Some(Token::Comma) if !values.is_empty() => {}
                Some(Token::Close) if !values.is_empty() => {
                    return Ok(single_clause(Clause::In(field, values), at));
                }
                _ => {
                    return Err(error_at_position(
                        place,
                        "a list value is missing here".into(),
                    ));
                }
            }
        }
    }

    fn parse_comparison(
        &mut self,
        (field, is_quoted): (String, bool),
        operator: Operator,
        at: usize,
    ) -> Result<ParsedTerm, FilterError> {
        let place = self.position();
        let Some(Token::Word(word)) = self.next() else {
            let message = format!("a value is missing after `{field}{}`", operator.symbol());
            return Err(error_at_position(place, message));
        };
        let moment = |parser: &Self| match parser.parse_literal("lastSeen", word, place)? {
            Literal::Text(text) if text.parse::<Timestamp>().is_err() => {
                let known = "an age such as `2h`, a time today such as `09:30`, a date, or \
                             RFC 3339";
                Err(error_at_position(
                    place,
                    format!("`{text}` is not a time; expected {known}"),
                ))
            }
            literal => Ok(literal),
        };
        let ordered = |parser: &Self| {
            if word.pieces.contains(&Piece::Star) {
                let sign = operator.symbol();
                return Err(error_at_position(
                    place,
                    format!("`{sign}` does not allow `*`; quote it"),
                ));
            }
            parser.parse_literal(&field, word, place)
        };
        let clause = match operator {
            Operator::Equal if field == "since" && !is_quoted => {
                Clause::GreaterAndEquals("lastSeen".into(), moment(self)?)
            }
            Operator::Equal if field == "until" && !is_quoted => {
                Clause::Less("startTime".into(), moment(self)?)
            }
            Operator::Equal | Operator::NotEqual => self.parse_equality(&field, word, place)?,
            Operator::MatchesWhole => return Ok(whole_text_match(&field, &word_pattern(word), at)),
            Operator::NotMatches if self.has_whole => {
                return Ok(negate(
                    whole_text_match(&field, &word_pattern(word), at),
                    at,
                ));
            }
            Operator::Matches | Operator::NotMatches => {
                Clause::Matches(field.clone(), word_pattern(word))
            }
            Operator::Above => Clause::Greater(field.clone(), ordered(self)?),
            Operator::AtLeast => Clause::GreaterAndEquals(field.clone(), ordered(self)?),
            Operator::Below => Clause::Less(field.clone(), ordered(self)?),
            Operator::AtMost => Clause::LessAndEquals(field.clone(), ordered(self)?),
        };
        let read = single_clause(clause, at);
        Ok(match operator {
            Operator::NotEqual | Operator::NotMatches => negate(read, at),
            _ => read,
        })
    }

    fn parse_equality(
        &self,
        field: &str,
        word: &Word,
        place: usize,
    ) -> Result<Clause, FilterError> {
        let field_name = field.to_owned();
        Ok(match &word.pieces[..] {
            [Piece::Star] => Clause::Exists(field_name),
            [Piece::Star, Piece::Text(text), Piece::Star] => {
                Clause::Contains(field_name, text.clone())
            }
            [Piece::Text(text), Piece::Star] => Clause::StartsWith(field_name, text.clone()),
            [Piece::Star, Piece::Text(text)] => Clause::EndsWith(field_name, text.clone()),
            pieces if pieces.contains(&Piece::Star) => {
                Clause::Matches(field_name, pattern_from_stars(pieces))
            }
            _ => Clause::Equals(field_name, self.parse_literal(field, word, place)?),
        })
    }

    fn parse_literal(
        &self,
        field: &str,
        word: &Word,
        place: usize,
    ) -> Result<Literal, FilterError> {
        word_to_literal(field, &word_text(word), word.quoted, self.now)
            .map_err(|message| error_at_position(place, message))
    }

    fn source_text(&self, at: usize) -> String {
        let length = self.position().saturating_sub(at);
        let written: String = self.text.chars().skip(at).take(length).collect();
        written.trim_end().to_owned()
    }

    fn position(&self) -> usize {
        self.tokens.first().map_or(self.end, |(at, _)| *at)
    }

    fn next(&mut self) -> Option<&'a Token> {
        let ((_, token), rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(token)
    }

    /// Consumes the next token if it is the given conjunction, as a word or a sign.
    fn consume_joint(&mut self, text: &str, sign: &Token) -> bool {
        let is_sign = self.tokens.first().is_some_and(|(_, token)| token == sign);
        if is_sign {
            self.tokens = &self.tokens[1..];
        }
        is_sign || self.consume_word(text)
    }

    /// Consumes a comma between comparisons, as in lists of matchers.
    fn consume_comma(&mut self) -> bool {
        let is_it = matches!(
            self.tokens,
            [
                (_, Token::Comma),
                (_, Token::Word(_)),
                (_, Token::Operator(_)),
                ..
            ]
        );
        if is_it {
            self.tokens = &self.tokens[1..];
        }
        is_it
    }

    /// Consumes the next token if it is the given word and does not begin a comparison.
    fn consume_word(&mut self, text: &str) -> bool {
        let is_compared = matches!(self.tokens.get(1), Some((_, Token::Operator(_))));
        let is_it =
            matches!(self.tokens.first(), Some((_, Token::Word(word))) if is_word(word, text));
        if is_it && !is_compared {
            self.tokens = &self.tokens[1..];
        }
        is_it && !is_compared
    }
}

/// Parses a value: a number, a boolean or a time unless quoted, else text.
///
/// # Errors
/// Returns an error for a relative time without a reference time.
pub(super) fn word_to_literal(
    field: &str,
    text: &str,
    quoted: bool,
    now: Option<&TimeReference>,
) -> Result<Literal, String> {
    let as_text = || Literal::Text(text.to_owned());
    if quoted {
        return Ok(as_text());
    }
    match (field, text) {
        ("lastSeen" | "startTime" | "timestamp", _) => {
            if let Some(literal) = parse_time(text, now) {
                return literal;
            }
        }
        ("acknowledged", "yes") | (_, "true") => return Ok(Literal::Bool(true)),
        ("acknowledged", "no") | (_, "false") => return Ok(Literal::Bool(false)),
        _ => {}
    }
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    // A number that would be printed differently, such as `007`, is text.
    Ok(match number {
        Some(number) if number.to_string() == text => Literal::Number(number),
        _ => as_text(),
    })
}

fn error_at_position(at: usize, message: String) -> FilterError {
    FilterError { at, message }
}

fn describe_token(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("`{}`", word_text(word)),
        Token::Operator(operator) => format!("`{}`", operator.symbol()),
        Token::Minus => "`-`".into(),
        Token::Not => "`!`".into(),
        Token::And => "`&&`".into(),
        Token::Or => "`||`".into(),
        Token::Open => "`(`".into(),
        Token::Close => "`)`".into(),
        Token::Comma => "`,`".into(),
    }
}

fn single_clause(clause: Clause, at: usize) -> ParsedTerm {
    let positions = Positions {
        at,
        inside: Vec::new(),
    };
    (clause, positions)
}

fn negate((clause, positions): ParsedTerm, at: usize) -> ParsedTerm {
    let positions = Positions {
        at,
        inside: vec![positions],
    };
    (Clause::Not(Box::new(clause)), positions)
}

/// Builds a clause that matches the whole value of a field. A pattern that matches the empty string
/// also matches a missing field, as in Prometheus.
fn whole_text_match(field: &str, pattern: &str, at: usize) -> ParsedTerm {
    let pattern = format!("^(?:{pattern})$");
    let built = RegexBuilder::new(&pattern)
        .size_limit(PATTERN_MEMORY_BYTES_MAX)
        .build();
    let takes_nothing = built.is_ok_and(|it| it.is_match(""));
    let matches = single_clause(Clause::Matches(field.to_owned(), pattern), at);
    if !takes_nothing {
        return matches;
    }
    let absent = negate(single_clause(Clause::Exists(field.to_owned()), at), at);
    join_clauses(vec![matches, absent], Clause::Or)
}

fn join_clauses(mut clauses: Vec<ParsedTerm>, join: impl Fn(Vec<Clause>) -> Clause) -> ParsedTerm {
    if clauses.len() == 1
        && let Some(only) = clauses.pop()
    {
        return only;
    }
    let at = clauses.first().map_or(0, |(_, positions)| positions.at);
    let (clauses, inside) = clauses.into_iter().unzip();
    (join(clauses), Positions { at, inside })
}

/// Builds a clause that searches the name and the summary for a text.
fn search_clause(word: &Word, at: usize) -> Result<ParsedTerm, FilterError> {
    let text: String = match &word.pieces[..] {
        [] => return Err(error_at_position(at, "a condition is missing here".into())),
        [Piece::Star] => {
            return Err(error_at_position(
                at,
                "`*` alone matches everything; remove it".into(),
            ));
        }
        // Stars around a search text have no effect.
        pieces => {
            let [Piece::Text(text)] = trim_pieces(pieces) else {
                let message = "a search text allows `*` only at its ends; use `name=` with it";
                return Err(error_at_position(at, message.into()));
            };
            text.clone()
        }
    };
    if text.is_empty() {
        return Err(error_at_position(at, "the quotes are empty".into()));
    }
    let fields = ["name", "summary"];
    let clauses =
        fields.map(|field| single_clause(Clause::Contains(field.into(), text.clone()), at));
    Ok(join_clauses(clauses.into(), Clause::Or))
}

/// Splits a comparison in the syntax of other languages into field and value.
pub(super) fn split_foreign_operator(text: &str) -> Option<(&str, &str)> {
    let (field, value) = text.split_once(':')?;
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_field = field.starts_with(char::is_alphabetic) && field.chars().all(in_name);
    // The word is a URL, or a name such as `std::io`.
    let is_text = value.starts_with("//") || value.starts_with(':');
    (is_field && !is_text).then_some((field, value))
}

fn trim_pieces(pieces: &[Piece]) -> &[Piece] {
    let pieces = pieces.strip_prefix(&[Piece::Star]).unwrap_or(pieces);
    pieces.strip_suffix(&[Piece::Star]).unwrap_or(pieces)
}

fn field_name(word: &Word, at: usize) -> Result<String, FilterError> {
    match &word.pieces[..] {
        [Piece::Text(text)] if !text.is_empty() && word.quoted => Ok(text.clone()),
        [Piece::Text(text)] if !text.is_empty() => Ok(resolve_alias(text)),
        _ => Err(error_at_position(at, "a field name is missing here".into())),
    }
}

pub(super) fn resolve_alias(name: &str) -> String {
    match name {
        "acked" => "acknowledged".into(),
        other => other.to_owned(),
    }
}

fn is_word(word: &Word, text: &str) -> bool {
    matches!(&word.pieces[..], [Piece::Text(own)] if !word.quoted && own.eq_ignore_ascii_case(text))
}

fn word_text(word: &Word) -> String {
    let text = word.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Star => "*",
    });
    text.collect()
}

fn word_pattern(word: &Word) -> String {
    word_text(word)
}

/// Builds an anchored pattern in which stars match any characters.
fn pattern_from_stars(pieces: &[Piece]) -> String {
    let inside: String = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => regex::escape(text),
            Piece::Star => "(?s:.*)".into(),
        })
        .collect();
    format!("^{inside}$")
}
