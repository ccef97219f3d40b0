//! Headers that are begun.

use pktc_diagnostics::Span;

use super::Header;

impl Header {
    /// One with nothing but its name.
    #[must_use]
    pub fn empty(name: String, doc: String, span: Span) -> Header {
        Header {
            name,
            doc,
            span,
            fields: Vec::new(),
            fixed_bytes: 0,
            length: None,
            claims: Vec::new(),
            valid: Vec::new(),
            needs: None,
            repeats: 1,
            next: Vec::new(),
            options: None,
            options_from: Vec::new(),
        }
    }
}
