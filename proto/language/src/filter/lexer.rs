//! Splits a filter into tokens, each with its position.

use super::FilterError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// A `*` outside quotes, which matches any characters.
    Star,
}

/// A word: letters, quoted text and stars without space between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    /// Whether any part is quoted, so that the word has no special meaning.
    pub(super) quoted: bool,
    /// Whether there is a colon outside quotes.
    pub(super) has_colon: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Matches,
    NotMatches,
    MatchesWhole,
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Operator {
    /// Longer signs come first, so that `=~` is not read as `=`.
    pub(super) const SIGNS: [(&str, Self); 9] = [
        ("=~", Self::MatchesWhole),
        ("!=", Self::NotEqual),
        ("!~", Self::NotMatches),
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        ("=", Self::Equal),
        ("~", Self::Matches),
        (">", Self::Above),
        ("<", Self::Below),
    ];

    pub(super) fn symbol(self) -> &'static str {
        let own = Self::SIGNS.iter().find(|(_, operator)| *operator == self);
        own.map_or("", |(sign, _)| sign)
    }

    fn is_pattern(self) -> bool {
        matches!(self, Self::Matches | Self::NotMatches | Self::MatchesWhole)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    Operator(Operator),
    Minus,
    Not,
    And,
    Or,
    Open,
    Close,
    Comma,
}

pub(super) type PositionedToken = (usize, Token);

struct Lexer<'a> {
    text: &'a str,
    rest: &'a str,
    tokens: Vec<PositionedToken>,
}

pub(super) fn tokenize(text: &str) -> Result<Vec<PositionedToken>, FilterError> {
    let mut lexer = Lexer {
        text,
        rest: text,
        tokens: Vec::new(),
    };
    loop {
        lexer.rest = lexer.rest.trim_start();
        let Some(next) = lexer.rest.chars().next() else {
            return Ok(lexer.tokens);
        };
        let at = lexer.position();
        let token = lexer.read_token(next)?;
        lexer.tokens.push((at, token));
    }
}

impl Lexer<'_> {
    fn position(&self) -> usize {
        let passed = self.text.len() - self.rest.len();
        self.text[..passed].chars().count()
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn read_token(&mut self, next: char) -> Result<Token, FilterError> {
        let after = match self.tokens.last() {
            Some((_, Token::Operator(operator))) => Some(*operator),
            _ => None,
        };
        if let Some(operator) = after
            && operator.is_pattern()
            && next != '"'
        {
            return Ok(Token::Word(self.read_pattern()));
        }
        let joint = JOINTS.iter().find(|(sign, _)| self.rest.starts_with(sign));
        if let Some((sign, token)) = joint {
            self.advance(sign.len());
            return Ok(token.clone());
        }
        let single = match next {
            '(' => Some(Token::Open),
            ')' => Some(Token::Close),
            ',' => Some(Token::Comma),
            '-' if after.is_none() => Some(Token::Minus),
            _ => None,
        };
        if let Some(token) = single {
            self.advance(1);
            return Ok(token);
        }
        let sign = Operator::SIGNS
            .iter()
            .find(|(sign, _)| self.rest.starts_with(sign));
        if let Some((sign, operator)) = sign {
            self.advance(sign.len());
            // `==` is the same as `=`.
            if *operator == Operator::Equal && self.rest.starts_with('=') {
                self.advance(1);
            }
            return Ok(Token::Operator(*operator));
        }
        if next == '!' {
            self.advance(1);
            return Ok(Token::Not);
        }
        Ok(Token::Word(self.read_word()?))
    }

    fn is_at_separator(&self) -> bool {
        JOINTS.iter().any(|(sign, _)| self.rest.starts_with(sign))
    }

    /// Reads an unquoted pattern, up to a space or an unmatched closing bracket.
    fn read_pattern(&mut self) -> Word {
        let mut depth = 0_usize;
        let end = self.rest.find(|character: char| match character {
            '(' => {
                depth += 1;
                false
            }
            ')' if depth == 0 => true,
            ')' => {
                depth -= 1;
                false
            }
            other => other.is_whitespace(),
        });
        let end = end.unwrap_or(self.rest.len());
        let pieces = vec![Piece::Text(self.rest[..end].to_owned())];
        self.advance(end);
        Word {
            pieces,
            quoted: false,
            has_colon: false,
        }
    }

    fn read_word(&mut self) -> Result<Word, FilterError> {
        let mut word = Word {
            pieces: Vec::new(),
            quoted: false,
            has_colon: false,
        };
        while let Some(next) = self.rest.chars().next() {
            match next {
                '"' => {
                    word.quoted = true;
                    let text = self.read_quoted()?;
                    push(&mut word.pieces, &text);
                    if text.is_empty() && word.pieces.is_empty() {
                        word.pieces.push(Piece::Text(text));
                    }
                }
                '*' => {
                    self.advance(1);
                    // Consecutive stars are stored as one.
                    if word.pieces.last() != Some(&Piece::Star) {
                        word.pieces.push(Piece::Star);
                    }
                }
                '\\' => {
                    let mut escaped = self.rest[1..].chars();
                    let Some(escaped) = escaped.next() else {
                        let message = "nothing follows the `\\`".into();
                        return Err(FilterError {
                            at: self.position(),
                            message,
                        });
                    };
                    self.advance(1 + escaped.len_utf8());
                    word.quoted = true;
                    push(&mut word.pieces, escaped.encode_utf8(&mut [0; 4]));
                }
                other if ends_word(other) || self.is_at_separator() => break,
                other => {
                    self.advance(other.len_utf8());
                    word.has_colon |= other == ':';
                    push(&mut word.pieces, other.encode_utf8(&mut [0; 4]));
                }
            }
        }
        Ok(word)
    }

    /// Reads quoted text: `\"` and `\\` are escapes, any other `\` is literal.
    fn read_quoted(&mut self) -> Result<String, FilterError> {
        let at = self.position();
        let mut text = String::new();
        let mut characters = self.rest[1..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.advance(1 + offset + 1);
                    return Ok(text);
                }
                '\\' if matches!(characters.as_str().chars().next(), Some('"' | '\\')) => {
                    text.extend(characters.next().map(|(_, escaped)| escaped));
                }
                other => text.push(other),
            }
        }
        let message = "this quote is never closed".into();
        Err(FilterError { at, message })
    }
}

/// Conjunctions as written in other languages. A single `&` or `|` is part of a word.
const JOINTS: [(&str, Token); 2] = [("&&", Token::And), ("||", Token::Or)];

pub(super) fn has_separator(text: &str) -> bool {
    JOINTS.iter().any(|(sign, _)| text.contains(sign))
}

pub(super) fn ends_word(character: char) -> bool {
    character.is_whitespace() || matches!(character, '(' | ')' | ',' | '=' | '!' | '~' | '<' | '>')
}

fn push(pieces: &mut Vec<Piece>, more: &str) {
    match pieces.last_mut() {
        _ if more.is_empty() => {}
        Some(Piece::Text(text)) => text.push_str(more),
        _ => pieces.push(Piece::Text(more.to_owned())),
    }
}
