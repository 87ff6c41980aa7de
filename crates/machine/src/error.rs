//! Errors that point into a file.
//!
//! Whatever is wrong with a machine file, the reader learns the file, the
//! line, the column, sees the offending text underlined, and is told a way to
//! mend it. An error is a plain value; [`std::fmt::Display`] renders it the
//! way compilers do.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text and the name to call it by in errors (usually its path).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedText {
    pub name: String,
    pub text: String,
}

impl NamedText {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> NamedText {
        NamedText { name: name.into(), text: text.into() }
    }
}

/// A range of bytes in a file.
#[derive(Clone, Debug)]
pub struct Place {
    pub file: Arc<NamedText>,
    pub span: Range<usize>,
}

impl Place {
    /// An error here. The place may be empty or out of the text; it is then
    /// moved to the nearest character.
    pub fn error(&self, message: impl Into<String>) -> FileError {
        FileError::at(&self.file, self.span.clone(), message)
    }
}

/// What is wrong with a machine, extension or rules file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    pub file: String,
    /// Line and column, counted from 1 (columns in characters); 0 where the
    /// error is not at any place of a file.
    pub line: u32,
    pub column: u32,
    /// Characters to underline.
    pub width: u32,
    /// The whole offending line.
    pub text: String,
    pub message: String,
    /// How to mend it.
    pub mend: Option<String>,
}

impl FileError {
    /// An error at a range of bytes.
    pub fn at(file: &NamedText, span: Range<usize>, message: impl Into<String>) -> FileError {
        let text = file.text.as_str();
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(span.start), floor(span.end));
        let line_start = text[..start].rfind('\n').map_or(0, |n| n + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        let line = text[..start].bytes().filter(|&b| b == b'\n').count() + 1;
        let shown = text[line_start..line_end].trim_end_matches('\r');
        FileError {
            file: file.name.clone(),
            line: line as u32,
            column: text[line_start..start].chars().count() as u32 + 1,
            width: text[start..end.clamp(start, line_end)].chars().count().max(1) as u32,
            text: shown.to_owned(),
            message: message.into(),
            mend: None,
        }
    }

    /// An error that no place in a file shows.
    pub fn nowhere(file: impl Into<String>, message: impl Into<String>) -> FileError {
        let (file, message) = (file.into(), message.into());
        FileError { file, line: 0, column: 0, width: 0, text: String::new(), message, mend: None }
    }

    /// Add what to do about it.
    pub fn mend(mut self, mend: impl Into<String>) -> FileError {
        self.mend = Some(mend.into());
        self
    }

    /// Add a mend when there is one.
    pub fn mend_opt(mut self, mend: Option<String>) -> FileError {
        if mend.is_some() {
            self.mend = mend;
        }
        self
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        if self.line == 0 {
            write!(f, "  --> {}", self.file)?;
        } else {
            let number = self.line.to_string();
            let pad = " ".repeat(number.len());
            writeln!(f, "{pad} --> {}:{}:{}", self.file, self.line, self.column)?;
            // A very long line would drown the message: show a window of it.
            let column = self.column as usize - 1;
            let from = if column > 100 { column - 60 } else { 0 };
            let shown: String = self.text.chars().skip(from).take(160).collect();
            let lead: String = shown.chars().take(column - from).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let carets = "^".repeat((self.width as usize).clamp(1, 100));
            writeln!(f, "{pad} |")?;
            writeln!(f, "{number} | {shown}")?;
            write!(f, "{pad} | {lead}{carets}")?;
        }
        if let Some(mend) = &self.mend {
            write!(f, "\n  = {mend}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FileError {}

/// "did you mean `alu`?" when one of the names is close to `name`.
pub fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let close = nearest(name, names, 1);
    close.first().map(|n| format!("did you mean `{n}`?"))
}

/// Instructions that a wrong name may mean: those close to it, and those that it is the
/// beginning of, or a part (`and` where there are `and_r` and `and_i8`).
pub fn near_instruction<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.into_iter().collect();
    // The first variant of a clustered instruction has the name of all of them.
    let whole = || names.iter().copied().filter(|n| !n.contains('.'));
    let forms: Vec<&str> = whole().filter(|n| n.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'))).collect();
    if forms.len() > 1 {
        return Some(format!("there are {}", list(forms)));
    }
    let near = did_you_mean(name, forms.into_iter().chain(names.iter().copied()));
    let parts = || list(whole().filter(|n| name.len() > 1 && n.contains(name)));
    near.or_else(|| Some(parts()).filter(|p| p != "nothing").map(|p| format!("there are {p}")))
}

/// The names closest to `name`, best first, at most `count`, none when
/// everything is far off.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let name: Vec<char> = name.chars().take(64).collect();
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .map(|n| (distance(&name, &n.chars().take(64).collect::<Vec<_>>()), n))
        // Two names of which no letter is the same are not near.
        .filter(|(d, n)| *d <= 1 + name.len().max(n.len()) / 3 && *d < name.len().max(n.chars().count()))
        .collect();
    scored.sort();
    scored.dedup();
    scored.into_iter().take(count).map(|(_, n)| n).collect()
}

/// A comma-separated list for messages, cut after a dozen names.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let mut text = all.iter().take(12).copied().collect::<Vec<_>>().join(", ");
    if all.len() > 12 {
        text.push_str(&format!(" and {} more", all.len() - 12));
    }
    if text.is_empty() { "nothing".to_owned() } else { text }
}

/// Edit distance with exchange of neighbours counted as one.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_line_and_column() {
        let file = NamedText::new("m.toml", "a = 1\nunits = [\"älx\"]\n");
        let at = file.text.find("älx").unwrap();
        let e = FileError::at(&file, at..at + 4, "unknown unit `älx`").mend("did you mean `alu`?");
        assert_eq!((e.line, e.column, e.width), (2, 11, 3));
        assert_eq!(
            e.to_string(),
            "error: unknown unit `älx`\n  --> m.toml:2:11\n  |\n2 | units = [\"älx\"]\n  |           ^^^\n  = did you mean `alu`?"
        );
    }

    #[test]
    fn survives_spans_outside_the_text() {
        let file = NamedText::new("m", "é");
        for span in [(0, 0), (1, 2), (5, 9), (9, 1)] {
            let _ = FileError::at(&file, span.0..span.1, "x").to_string();
        }
    }

    #[test]
    fn suggests_only_close_names() {
        assert_eq!(did_you_mean("alx", ["alu", "mul", "lsu"]).as_deref(), Some("did you mean `alu`?"));
        assert_eq!(did_you_mean("frobnicate", ["alu", "mul"]), None);
        assert_eq!(distance(&['a', 'b'], &['b', 'a']), 1);
    }
}
