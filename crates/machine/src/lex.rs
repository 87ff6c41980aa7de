//! Words of the semantics language.

use std::ops::Range;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Token {
    Name(String),
    Number(u64),
    /// An operator or punctuation mark.
    Sign(&'static str),
    End,
}

/// What is wrong with a piece of semantics, and where in the text (bytes).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SemError {
    pub span: Range<usize>,
    pub message: String,
    pub mend: Option<String>,
}

impl SemError {
    pub fn new(span: Range<usize>, message: impl Into<String>) -> SemError {
        SemError { span, message: message.into(), mend: None }
    }

    pub fn mend(mut self, mend: impl Into<String>) -> SemError {
        self.mend = Some(mend.into());
        self
    }
}

/// Most words a piece of semantics may have: bounds the depth of every tree
/// made of it, so that walking one recursively is safe.
pub const MAX_TOKENS: usize = 2000;

/// Longest first: the first that fits is taken.
const SIGNS: [&str; 39] = [
    "<=u", "<=s", ">=u", ">=s", ">>u", ">>s", "<<", "<u", "<s", ">u", ">s", "==", "!=", "&&", "||", "<=", ">=", ">>",
    "/u", "/s", "%u", "%s", "<", ">", "=", "|", "^", "&", "+", "-", "*", "/", "%", "~", "!", "?", ":", ";", ",",
];
const BRACKETS: [&str; 7] = ["(", ")", "[", "]", "#", "{", "}"];

/// Cut a text into words; the last is [`Token::End`].
pub fn lex(text: &str) -> Result<Vec<(Token, Range<usize>)>, SemError> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if tokens.len() >= MAX_TOKENS {
            let error = SemError::new(at..at + 1, format!("more than {MAX_TOKENS} words in one piece of semantics"));
            return Err(error.mend("split it into several instructions"));
        }
        let start = at;
        let c = bytes[at];
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let token = if c.is_ascii_alphabetic() || c == b'_' {
            while at < bytes.len() && word_char(bytes[at]) {
                at += 1;
            }
            Token::Name(text[start..at].to_owned())
        } else if c.is_ascii_digit() {
            while at < bytes.len() && word_char(bytes[at]) {
                at += 1;
            }
            Token::Number(number(&text[start..at]).ok_or_else(|| {
                SemError::new(start..at, format!("`{}` is not a number of 64 bits", &text[start..at]))
                    .mend("write decimal (255), hexadecimal (0xff) or binary (0b11), with _ between digits if you like")
            })?)
        } else {
            let sign = SIGNS.iter().chain(&BRACKETS).find(|s| fits(text, at, s));
            let Some(sign) = sign else {
                let c = text[at..].chars().next().unwrap_or(' ');
                return Err(SemError::new(at..at + c.len_utf8(), format!("`{c}` has no meaning in semantics")));
            };
            at += sign.len();
            Token::Sign(sign)
        };
        tokens.push((token, start..at));
    }
    tokens.push((Token::End, bytes.len()..bytes.len()));
    Ok(tokens)
}

fn word_char(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// A sign ending in a letter (`<u`) must not run into a word (`<unit`).
fn fits(text: &str, at: usize, sign: &str) -> bool {
    let bytes = text.as_bytes();
    let after = bytes.get(at + sign.len()).copied().unwrap_or(b' ');
    bytes[at..].starts_with(sign.as_bytes()) && !(sign.ends_with(['u', 's']) && word_char(after))
}

fn number(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|&c| c != '_').collect();
    if let Some(hex) = digits.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(binary) = digits.strip_prefix("0b") {
        u64::from_str_radix(binary, 2).ok()
    } else {
        digits.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Token> {
        lex(text).unwrap().into_iter().map(|(t, _)| t).collect()
    }

    #[test]
    fn signs_with_letters_stop_at_words() {
        use Token::*;
        assert_eq!(words("a <u b"), [Name("a".into()), Sign("<u"), Name("b".into()), End]);
        assert_eq!(words("a <u(b"), [Name("a".into()), Sign("<u"), Sign("("), Name("b".into()), End]);
        assert_eq!(words("a <ub"), [Name("a".into()), Sign("<"), Name("ub".into()), End]);
        assert_eq!(words("a>>u 3"), [Name("a".into()), Sign(">>u"), Number(3), End]);
    }

    #[test]
    fn numbers() {
        assert_eq!(
            words("0xffff_0000 0b101 12"),
            [Token::Number(0xffff_0000), Token::Number(5), Token::Number(12), Token::End]
        );
        assert_eq!(lex("x 12y").unwrap_err().span, 2..5);
        assert!(lex("99999999999999999999999").is_err());
        assert_eq!(lex("a § b").unwrap_err().span, 2..4);
    }
}
