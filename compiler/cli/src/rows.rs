//! Tables for people.

use crate::console::Console;
use crate::failure::Failure;

/// Where a column's text stands.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Prints rows under titles, each column as wide as its widest text; nothing stands behind the last text.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print_rows<const N: usize>(
    titles: [&str; N],
    aligns: [Align; N],
    rows: &[[String; N]],
    console: &mut Console,
) -> Result<(), Failure> {
    let titles = titles.map(str::to_owned);
    let width = |column: usize| rows.iter().chain([&titles]).map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    for row in [&titles].into_iter().chain(rows) {
        let cells: Vec<String> = std::iter::zip(row, std::iter::zip(widths, aligns))
            .map(|(text, (width, align))| match align {
                Align::Left => format!("{text:<width$}"),
                Align::Right => format!("{text:>width$}"),
            })
            .collect();
        console.line(cells.join("  ").trim_end())?;
    }
    Ok(())
}
