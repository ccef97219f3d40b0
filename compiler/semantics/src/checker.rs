//! The checker's state, and the order of its work.
//!
//! Declarations are given ids first, so that order in and across files does not matter; then enums, header
//! fields and sets get their content, then unions, header parts and `bind`s (which make the parse graph), then
//! chains, programs and tests. Each step reports all its mistakes and goes on; a declaration that could not be
//! understood keeps its name, so that its uses raise no further errors.

use hashbrown::{HashMap, HashSet};
use std::rc::Rc;

use cranelift_entity::PrimaryMap;
use pktc_diagnostics::{Diagnostic, SourceMap, Span, has_errors};
use pktc_syntax::ast;

use crate::graph::Graph;
use crate::load::Unit;
use crate::names::{Scopes, Symbol, SymbolId};
use crate::typed::{ChainId, CounterId, EnumId, Expr, Field, HeaderId, Program, SetId, Type, UnionId, XdpId};

/// All of a check.
pub(crate) struct Checker<'a> {
    /// The parsed files.
    pub(crate) units: &'a [Unit],
    /// Their texts, for messages that quote them.
    pub(crate) sources: &'a SourceMap,
    /// What was found.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What is put out; ids are given before content.
    pub(crate) program: Program,
    /// Every declared name.
    pub(crate) symbols: Vec<Symbol<'a>>,
    /// Which symbols are used from the user's files.
    pub(crate) used: Vec<bool>,
    /// Definitions that lead back to themselves: reported once, passed over after that.
    pub(crate) circular: HashSet<SymbolId>,
    /// What each file sees.
    pub(crate) scopes: Scopes,
    /// Declarations by kind, with the unit that each stands in.
    pub(crate) decls: Decls<'a>,
    /// Which `as` name of a header belongs to which branches: `udp.port`.
    pub(crate) aliases: HashMap<(HeaderId, String), Vec<usize>>,
    /// The tunnel or quoted packet that all edges of a branch lead into: `next inner by proto`.
    pub(crate) branch_scopes: HashMap<(HeaderId, usize), ast::Scope>,
    /// The literal sets at each place: a definition that is used twice needs its set once.
    pub(crate) literal_sets: HashMap<Span, Vec<SetId>>,
    /// Where each element of a set stands.
    pub(crate) element_spans: HashMap<SetId, Vec<Span>>,
    /// What presence implies; filled when the parse graph is complete.
    pub(crate) graph: Graph,
    /// Whether messages are thrown away, so that none need be worked out.
    pub(crate) quiet: bool,
    /// How many expressions enclose the one being checked.
    pub(crate) depth: usize,
    /// How many definitions were expanded so far.
    pub(crate) expansions: usize,
}

/// Declarations by kind, with their ids and units.
#[derive(Default)]
pub(crate) struct Decls<'a> {
    pub(crate) enums: Vec<(EnumId, usize, &'a [ast::EnumMember])>,
    pub(crate) headers: Vec<(HeaderId, usize, &'a ast::Header)>,
    pub(crate) unions: Vec<(UnionId, usize, &'a ast::Union)>,
    pub(crate) sets: Vec<SetDecl<'a>>,
    pub(crate) binds: Vec<BindDecl<'a>>,
    pub(crate) chains: Vec<(ChainId, usize, &'a [ast::Stmt])>,
    pub(crate) xdps: Vec<(XdpId, usize, &'a [ast::XdpItem])>,
    pub(crate) tests: Vec<TestDecl<'a>>,
}

/// `set s: t = …;`
#[derive(Clone, Copy)]
pub(crate) struct SetDecl<'a> {
    pub(crate) id: SetId,
    pub(crate) unit: usize,
    pub(crate) ty: Option<&'a ast::Type>,
    pub(crate) elements: &'a ast::Elements,
}

/// `bind … => …;`
#[derive(Clone, Copy)]
pub(crate) struct BindDecl<'a> {
    pub(crate) unit: usize,
    pub(crate) selectors: &'a [ast::BindSelector],
    pub(crate) values: &'a [ast::SelectorValue],
    pub(crate) target: &'a ast::Target,
}

/// `test "…" of p { … }`
#[derive(Clone, Copy)]
pub(crate) struct TestDecl<'a> {
    pub(crate) unit: usize,
    pub(crate) name: &'a ast::StringLiteral,
    pub(crate) of: Option<&'a ast::Word>,
    pub(crate) steps: &'a [ast::Step],
}

/// What an expression may refer to.
#[derive(Clone, Default)]
pub(crate) struct Env<'a> {
    /// The file whose names it sees.
    pub(crate) unit: usize,
    /// In a header's or option's declaration: its fields.
    pub(crate) own: Option<Own>,
    /// In a definition: its arguments.
    pub(crate) params: Vec<(&'a str, Argument)>,
    /// Which instance `[any]` stands for at the moment.
    pub(crate) any: Option<u8>,
    /// The definitions and constants that are being expanded, outermost first.
    pub(crate) open: Vec<SymbolId>,
}

/// The fields that a declaration's expressions call by their bare names.
#[derive(Clone)]
pub(crate) enum Own {
    /// A header's, and its payload.
    Header(HeaderId),
    /// An option's.
    Option(Rc<[Field]>),
}

/// What a definition's parameter stands for.
#[derive(Clone)]
pub(crate) enum Argument {
    /// The argument at this use.
    Value(Expr),
    /// Nothing: the definition is checked by itself.
    Unknown(Type),
}

impl<'a> Checker<'a> {
    pub(crate) fn new(units: &'a [Unit], sources: &'a SourceMap) -> Self {
        Checker {
            units,
            sources,
            diagnostics: Vec::new(),
            program: empty_program(),
            symbols: Vec::new(),
            used: Vec::new(),
            circular: HashSet::new(),
            scopes: Scopes::default(),
            decls: Decls::default(),
            aliases: HashMap::new(),
            branch_scopes: HashMap::new(),
            literal_sets: HashMap::new(),
            element_spans: HashMap::new(),
            graph: Graph::default(),
            quiet: false,
            depth: 0,
            expansions: 0,
        }
    }

    /// Checks everything; see the module's documentation for the order.
    pub(crate) fn run(&mut self) {
        self.declare();
        self.enums();
        self.header_fields();
        self.sets();
        self.union_fields();
        self.header_parts();
        self.binds();
        self.build_graph();
        self.definitions();
        self.chains();
        self.xdps();
        self.tests();
        // After a mistake, what looks unused may be what the mistake was meant to use.
        if !has_errors(&self.diagnostics) {
            self.reject_too_many_rules();
            self.report_unused();
            self.report_unreached_headers();
        }
    }

    /// Keeps a message.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Does `work` without keeping its messages.
    pub(crate) fn quietly<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.diagnostics.len();
        let outer = std::mem::replace(&mut self.quiet, true);
        let result = work(self);
        self.quiet = outer;
        self.diagnostics.truncate(before);
        result
    }

    /// The text at `span`.
    pub(crate) fn text(&self, span: Span) -> &'a str {
        self.sources.snippet(span)
    }

    /// The environment of a file's own expressions.
    pub(crate) fn env(unit: usize) -> Env<'a> {
        Env { unit, ..Env::default() }
    }
}

fn empty_program() -> Program {
    Program {
        enums: PrimaryMap::new(),
        headers: PrimaryMap::new(),
        unions: PrimaryMap::new(),
        sets: PrimaryMap::new(),
        counters: PrimaryMap::<CounterId, _>::new(),
        chains: PrimaryMap::new(),
        xdps: PrimaryMap::new(),
        tests: Vec::new(),
        root: HeaderId::from_u32(0),
        transport: Vec::new(),
        packet_headers: Vec::new(),
        inner_headers: Vec::new(),
        quoted_headers: Vec::new(),
    }
}
