//! A Verilog value as bits side by side.
//!
//! A value is a list of pieces, highest first: zeros, bits of something that
//! has a name, or an expression in brackets. So a shift by a constant, a
//! slice and a concatenation cost nothing and read as what they are. Every
//! text made here has, by itself, exactly the width the value says: nothing
//! depends on how Verilog widens operands.

/// A piece of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Zeros(u8),
    /// Bits `lo + bits - 1` down to `lo` of a net that has `whole` bits.
    Net {
        name: String,
        lo: u8,
        bits: u8,
        whole: u8,
    },
    /// Any other expression.
    Text {
        text: String,
        bits: u8,
    },
}

impl Piece {
    pub fn bits(&self) -> u8 {
        match self {
            Piece::Zeros(bits) | Piece::Net { bits, .. } | Piece::Text { bits, .. } => *bits,
        }
    }

    fn text(&self) -> String {
        match self {
            Piece::Zeros(bits) => format!("{bits}'b0"),
            Piece::Net { name, bits, whole, .. } if bits == whole => name.clone(),
            Piece::Net { name, lo, bits: 1, .. } => format!("{name}[{lo}]"),
            Piece::Net { name, lo, bits, .. } => format!("{name}[{}:{lo}]", lo + bits - 1),
            Piece::Text { text, .. } => text.clone(),
        }
    }
}

/// Pieces, highest first; never none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value(pub Vec<Piece>);

impl Value {
    pub fn net(name: impl Into<String>, bits: u8) -> Value {
        Value(vec![Piece::Net { name: name.into(), lo: 0, bits, whole: bits }])
    }

    pub fn text(text: impl Into<String>, bits: u8) -> Value {
        Value(vec![Piece::Text { text: text.into(), bits }])
    }

    pub fn zeros(bits: u8) -> Value {
        Value(vec![Piece::Zeros(bits.max(1))])
    }

    /// A constant in as few bits as hold it.
    pub fn constant(value: u64) -> Value {
        let bits = (64 - value.leading_zeros()).max(1) as u8;
        if value == 0 { Value::zeros(1) } else { Value::text(format!("{bits}'h{value:x}"), bits) }
    }

    pub fn bits(&self) -> u8 {
        self.0.iter().map(Piece::bits).sum()
    }

    /// The value in exactly its own width.
    pub fn show(&self) -> String {
        match &self.0[..] {
            [piece] => piece.text(),
            pieces => format!("{{{}}}", pieces.iter().map(Piece::text).collect::<Vec<_>>().join(", ")),
        }
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|p| matches!(p, Piece::Zeros(_)))
    }

    /// Zeros known below the lowest other bit.
    pub fn low_zeros(&self) -> u8 {
        let zeros = |p: &&Piece| matches!(p, Piece::Zeros(_));
        self.0.iter().rev().take_while(zeros).map(Piece::bits).sum()
    }

    /// The same without zeros above: at least one bit.
    pub fn trimmed(mut self) -> Value {
        while self.0.len() > 1 && matches!(self.0[0], Piece::Zeros(_)) {
            self.0.remove(0);
        }
        self
    }

    /// Zeros above up to a width that is not less than its own.
    pub fn widened(mut self, bits: u8) -> Value {
        let more = bits.saturating_sub(self.bits());
        if more > 0 {
            match &mut self.0[0] {
                Piece::Zeros(n) => *n += more,
                _ => self.0.insert(0, Piece::Zeros(more)),
            }
        }
        self
    }

    pub fn shifted_up(mut self, by: u8) -> Value {
        if by > 0 {
            match self.0.last_mut() {
                Some(Piece::Zeros(n)) => *n += by,
                _ => self.0.push(Piece::Zeros(by)),
            }
        }
        self
    }

    /// This above that: `low` fits below this value's lowest bits, all zero.
    pub fn over(mut self, low: Value) -> Value {
        let mut room = self.low_zeros();
        while let Some(Piece::Zeros(_)) = self.0.last() {
            self.0.pop();
        }
        room -= low.bits();
        if room > 0 {
            self.0.push(Piece::Zeros(room));
        }
        self.0.extend(low.0);
        self
    }

    /// Bits `lo + bits - 1` down to `lo`; `None` when a piece without a name
    /// would have to be cut.
    pub fn slice(&self, lo: u8, bits: u8) -> Option<Value> {
        let mut out = Vec::new();
        let mut base = 0;
        for piece in self.0.iter().rev() {
            let end = base + piece.bits();
            let (from, to) = (lo.max(base), (lo + bits).min(end));
            if from < to {
                let part = to - from;
                out.insert(
                    0,
                    match piece {
                        Piece::Zeros(_) => Piece::Zeros(part),
                        Piece::Net { name, lo, whole, .. } => {
                            Piece::Net { name: name.clone(), lo: lo + (from - base), bits: part, whole: *whole }
                        }
                        Piece::Text { .. } if part == piece.bits() => piece.clone(),
                        Piece::Text { .. } => return None,
                    },
                );
            }
            base = end;
        }
        Some(if out.is_empty() { Value::zeros(1) } else { Value(out) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_shown_as_they_read_best() {
        let x = Value::net("x", 32);
        assert_eq!(x.slice(8, 8).unwrap().show(), "x[15:8]");
        assert_eq!(x.slice(31, 1).unwrap().show(), "x[31]");
        assert_eq!(x.slice(8, 8).unwrap().slice(4, 2).unwrap().show(), "x[13:12]");
        let pair = x.slice(0, 8).unwrap().shifted_up(16).over(Value::net("y", 8));
        assert_eq!((pair.show().as_str(), pair.bits()), ("{x[7:0], 8'b0, y}", 24));
        assert_eq!(pair.slice(4, 16).unwrap().show(), "{x[3:0], 8'b0, y[7:4]}");
        assert_eq!(pair.slice(30, 2).unwrap().show(), "1'b0");
        assert_eq!(Value::constant(0x63).show(), "7'h63");
        assert_eq!(Value::text("(a + b)", 8).slice(0, 4), None);
        assert_eq!(Value::net("y", 8).widened(32).show(), "{24'b0, y}");
    }
}
