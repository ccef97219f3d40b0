//! Every mistake is reported once, at its place; no text makes the parser fail.

use pktc_diagnostics::{Diagnostic, FileId, Severity, SourceMap};
use pktc_syntax::ast::DeclKind;
use pktc_syntax::{dump_ast, dump_tokens, parse};

const FILE: FileId = FileId(0);

fn error_lines(text: &str) -> Vec<u32> {
    let mut sources = SourceMap::default();
    let file = sources.add("test.pkt", text);
    let (_, diagnostics) = parse(file, text);
    diagnostics.iter().map(|diagnostic| sources.position(diagnostic.primary.span).line).collect()
}

#[test]
fn fourteen_mistakes_are_fourteen_messages() {
    let lines = error_lines(include_str!("mistakes/fourteen.pkt"));
    assert_eq!(lines, [2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 18, 22]);
}

#[test]
fn whatever_comes_in_masses_is_read_in_linear_time() {
    let begun = std::time::Instant::now();
    for text in
        ["/*", "“", "“ ", "é", "$ ", "//é", "\"é", "{", "(", "}", "xdp e { ", "rule: ", "\u{1b}", "'x\n"]
    {
        for before in ["", "xdp e { default pass; "] {
            let (_, diagnostics) = parse(FILE, &format!("{before}{}", text.repeat(200_000)));
            assert!(!diagnostics.is_empty() || text == "//é", "{before}{text}…");
        }
    }
    // Where it is not, seconds become minutes.
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn what_is_right_around_a_mistake_is_kept() {
    let (tree, diagnostics) = parse(FILE, include_str!("mistakes/fourteen.pkt"));
    assert_eq!(diagnostics.len(), 14);
    let text = dump_ast(&tree);
    for kept in
        ["set resolvers = {192.0.2.53, 198.51.100.0/24}", "rule two: ", "rule three: tcp", "rule good: ip"]
    {
        assert!(text.contains(kept), "{kept} is missing in\n{text}");
    }
}

#[test]
fn a_missing_semicolon_loses_no_statement() {
    let (tree, diagnostics) = parse(FILE, include_str!("mistakes/missing_semicolon.pkt"));
    assert_eq!(diagnostics.len(), 10);
    assert_eq!(tree.decls.len(), 8);
    let DeclKind::Xdp { items, .. } = &tree.decls[7].kind else { panic!("{:?}", tree.decls[7]) };
    assert_eq!(items.len(), 3);
}

#[test]
fn an_unclosed_block_does_not_swallow_the_next_declaration() {
    let (tree, diagnostics) = parse(FILE, include_str!("mistakes/unclosed_block.pkt"));
    assert_eq!(diagnostics.len(), 1);
    assert!(matches!(tree.decls[1].kind, DeclKind::Test { .. }));
}

#[test]
fn ten_thousand_parentheses_are_one_mistake() {
    for text in ["(".repeat(10_000), format!("def a = {}x{};", "(".repeat(10_000), ")".repeat(10_000))] {
        assert_eq!(error_lines(&text).len(), 1);
    }
    let nots = format!("def a = {} x;", "not ".repeat(10_000));
    assert_eq!(error_lines(&nots), [1]);
    let sums = format!("def a = x{};", " + x".repeat(10_000));
    assert_eq!(error_lines(&sums), [1]);
    let blocks = format!("xdp p {{ {} }}", "when a { ".repeat(10_000));
    assert_eq!(error_lines(&blocks), [1]);
}

#[test]
fn a_declaration_full_of_mistakes_is_given_up_with_a_word() {
    let text = format!("xdp p {{\n{}}}\nconst a = 5;", "    rule a: tcp.dport 53 => drop;\n".repeat(1000));
    let (tree, diagnostics) = parse(FILE, &text);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    assert_eq!(errors, 64);
    assert_eq!(diagnostics.len(), 65);
    assert_eq!(tree.decls.len(), 1);
}

#[test]
fn long_is_not_deep() {
    let conjunction = format!("def a = x{};", " and x".repeat(10_000));
    assert!(error_lines(&conjunction).is_empty());
    let set = format!("set s = {{ {} }};", "(10.0.0.0/8, 1-5), ".repeat(10_000));
    assert!(error_lines(&set).is_empty());
}

/// Where diagnostics point must exist, whatever the text.
fn check_spans(text: &str, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        let labels = diagnostic.secondary.iter().chain([&diagnostic.primary]);
        for span in labels.map(|label| label.span) {
            let slice = text.get(span.start as usize..span.end as usize);
            assert!(slice.is_some(), "{diagnostic:?} points between characters of\n{text}");
        }
    }
}

/// Programs, right and wrong.
const SEEDS: [&str; 12] = [
    include_str!("productions/declarations.pkt"),
    include_str!("productions/sets_and_maps.pkt"),
    include_str!("productions/state.pkt"),
    include_str!("productions/headers.pkt"),
    include_str!("productions/expressions.pkt"),
    include_str!("productions/program.pkt"),
    include_str!("productions/tests.pkt"),
    include_str!("mistakes/fourteen.pkt"),
    include_str!("mistakes/statements.pkt"),
    include_str!("mistakes/heads.pkt"),
    include_str!("mistakes/strings.pkt"),
    include_str!("mistakes/strays.pkt"),
];

#[test]
fn a_cut_text_is_read_as_far_as_it_goes() {
    for seed in SEEDS {
        for end in (0..seed.len()).step_by(3).filter(|&end| seed.is_char_boundary(end)) {
            let text = &seed[..end];
            let (_, diagnostics) = parse(FILE, text);
            check_spans(text, &diagnostics);
        }
    }
}

#[test]
fn a_text_without_one_of_its_tokens_is_refused_or_read() {
    for seed in SEEDS {
        for (start, end) in words(seed) {
            for replacement in ["", "}", "(", "rule", "é"] {
                let text = format!("{}{replacement}{}", &seed[..start], &seed[end..]);
                let (_, diagnostics) = parse(FILE, &text);
                check_spans(&text, &diagnostics);
            }
        }
    }
}

/// Without its `}`, no block is read without a word.
#[test]
fn every_missing_brace_is_noticed() {
    for seed in &SEEDS[..7] {
        for (at, _) in seed.match_indices('}') {
            let text = format!("{} {}", &seed[..at], &seed[at + 1..]);
            let (_, diagnostics) = parse(FILE, &text);
            assert!(diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error), "{text}");
        }
    }
}

/// The places of words and symbols, roughly.
fn words(text: &str) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices() {
        let in_word = character.is_alphanumeric() || character == '_';
        match start {
            Some(begin) if !in_word => {
                places.push((begin, at));
                start = None;
            }
            None if in_word => start = Some(at),
            _ => {}
        }
        if !in_word && !character.is_whitespace() {
            places.push((at, at + character.len_utf8()));
        }
    }
    places
}

#[test]
fn tokens_are_listed_with_their_places() {
    let listed = dump_tokens(FILE, "rule a: 10.0.0.0/8 => // no\n  drop; 60s");
    let expected = [
        "1:1\tkeyword\trule",
        "1:6\tword\ta",
        "1:7\tsymbol\t:",
        "1:9\tprefix\t10.0.0.0/8",
        "1:20\tsymbol\t=>",
        "2:3\tkeyword\tdrop",
        "2:7\tsymbol\t;",
        "2:9\tduration\t60s",
    ];
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
}
