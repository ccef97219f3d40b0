//! Reading files without doing I/O here: callers bring it.

/// Where source files, set files and captures come from.
pub trait Files {
    /// The content of the file at `path` (as a caller of the operating system would name it).
    ///
    /// # Errors
    /// A sentence for the user: why it cannot be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}
