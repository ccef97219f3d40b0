//! Which name means what where.
//!
//! A file sees its own names, those of the files it uses, and the standard library's, in this order; names do
//! not pass on from a used file to its user's users. Blocks (chains and programs) have a name space of their
//! own, so that a chain may be called `tcp` as the header is.

use hashbrown::{HashMap, HashSet};

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, DeclKind, Word};

use crate::checker::{BindDecl, Checker, SetDecl, TestDecl};
use crate::suggest::nearest;
use crate::typed::{
    Chain, ChainId, Counter, CounterId, Enum, EnumId, Header, HeaderId, Set, SetId, Type, Union, UnionId,
    Xdp, XdpId,
};

/// An index into the checker's symbols.
pub(crate) type SymbolId = usize;

/// A declared name.
#[derive(Clone, Copy)]
pub(crate) struct Symbol<'a> {
    /// The name, where it is declared.
    pub(crate) name: &'a Word,
    /// The file that declares it.
    pub(crate) unit: usize,
    /// What it is.
    pub(crate) kind: SymbolKind<'a>,
}

/// What a name stands for.
#[derive(Clone, Copy)]
pub(crate) enum SymbolKind<'a> {
    Header(HeaderId),
    Union(UnionId),
    Enum(EnumId),
    Set(SetId),
    Counter(CounterId),
    Const {
        ty: Option<&'a ast::Type>,
        value: &'a ast::Expr,
    },
    Def {
        params: &'a [ast::Param],
        body: &'a ast::Expr,
    },
    /// What this version only parses: a live set, a map, a meter ….
    Later(&'static str),
    Chain(ChainId),
    Xdp(XdpId),
}

impl SymbolKind<'_> {
    /// Whether it is in [`Space::Block`].
    pub(crate) fn is_block(&self) -> bool {
        matches!(self, SymbolKind::Chain(_) | SymbolKind::Xdp(_))
    }

    /// With its article, for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            SymbolKind::Header(_) => "a header",
            SymbolKind::Union(_) => "a union of headers",
            SymbolKind::Enum(_) => "an enum",
            SymbolKind::Set(_) => "a set",
            SymbolKind::Counter(_) => "a counter",
            SymbolKind::Const { .. } => "a constant",
            SymbolKind::Def { .. } => "a definition",
            SymbolKind::Later(what) => what,
            SymbolKind::Chain(_) => "a chain",
            SymbolKind::Xdp(_) => "a program",
        }
    }
}

/// The two kinds of names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    /// What expressions, types and actions refer to.
    Value,
    /// Chains and programs.
    Block,
}

/// What each file sees.
#[derive(Default)]
pub(crate) struct Scopes {
    own: Vec<HashMap<(Space, String), SymbolId>>,
    imported: Vec<HashMap<(Space, String), SymbolId>>,
    libraries: Vec<HashMap<String, Option<usize>>>,
    std: HashMap<(Space, String), SymbolId>,
}

impl<'a> Checker<'a> {
    /// Gives every declaration its id and every file its scope.
    pub(crate) fn declare(&mut self) {
        let units = self.units;
        for (unit, parsed) in units.iter().enumerate() {
            self.scopes.own.push(HashMap::new());
            for decl in &parsed.ast.decls {
                self.declare_one(unit, decl);
            }
        }
        for unit in 0..units.len() {
            self.import(unit);
        }
        self.qualify();
    }

    /// Tells apart sets, counters and chains that files declare by one name (which `use … as` allows): in
    /// reports, counters and maps, those of used files are called `FILE.NAME`.
    fn qualify(&mut self) {
        let mut taken: HashSet<(&'static str, String)> = HashSet::new();
        // The file named comes last, and keeps its names.
        for id in (0..self.symbols.len()).rev() {
            let Symbol { name, unit, kind } = self.symbols[id];
            let key = (kind.describe(), name.text.clone());
            if !matches!(kind, SymbolKind::Set(_) | SymbolKind::Counter(_) | SymbolKind::Chain(_))
                || taken.insert(key)
            {
                continue;
            }
            let path = self.units[unit].path.strip_suffix(".pkt").unwrap_or(&self.units[unit].path);
            let file = path.rsplit('/').next().unwrap_or(path);
            let mut qualified = format!("{file}.{}", name.text);
            if !taken.insert((kind.describe(), qualified.clone())) {
                qualified = format!("{}.{}", path.replace('/', "."), name.text);
            }
            match kind {
                SymbolKind::Set(set) => self.program.sets[set].name = Some(qualified),
                SymbolKind::Counter(counter) => self.program.counters[counter].name = qualified,
                SymbolKind::Chain(chain) => self.program.chains[chain].name = qualified,
                _ => {}
            }
        }
    }

    fn declare_one(&mut self, unit: usize, decl: &'a ast::Decl) {
        match &decl.kind {
            DeclKind::Use { .. } => {}
            DeclKind::Const { name, ty, value } => {
                self.value(unit, name, SymbolKind::Const { ty: ty.as_ref(), value });
            }
            DeclKind::Def { name, params, body } => self.value(unit, name, SymbolKind::Def { params, body }),
            DeclKind::Enum { name, ty, members } => self.declare_enum(unit, name, ty, members),
            DeclKind::Header(header) => {
                let id = self.program.headers.push(Header::empty(
                    header.name.text.clone(),
                    decl.doc.clone(),
                    header.name.span,
                ));
                self.decls.headers.push((id, unit, header));
                self.value(unit, &header.name, SymbolKind::Header(id));
            }
            DeclKind::Union(union) => self.declare_union(unit, union, &decl.doc),
            DeclKind::Bind { selectors, values, target } => {
                self.decls.binds.push(BindDecl { unit, selectors, values, target });
            }
            DeclKind::Set { name, ty, elements } => {
                let set =
                    Set { name: Some(name.text.clone()), span: name.span, ty: Type::Bool, elements: vec![] };
                let id = self.program.sets.push(set);
                self.decls.sets.push(SetDecl { id, unit, ty: ty.as_ref(), elements });
                self.value(unit, name, SymbolKind::Set(id));
            }
            DeclKind::Counter { name, key: None } => {
                let counter = Counter { name: name.text.clone(), span: name.span };
                let id = self.program.counters.push(counter);
                self.value(unit, name, SymbolKind::Counter(id));
            }
            DeclKind::Counter { name, key: Some(_) } => self.later(unit, name, "a keyed counter"),
            DeclKind::Map { name, .. } => self.later(unit, name, "a map"),
            DeclKind::LiveSet { name, .. } => self.later(unit, name, "a live set"),
            DeclKind::LiveMap { name, .. } => self.later(unit, name, "a live map"),
            DeclKind::LiveParam { name, .. } => self.later(unit, name, "a live param"),
            DeclKind::Meter { name, .. } => self.later(unit, name, "a meter"),
            DeclKind::Chain { name, body } => {
                let chain = Chain { name: name.text.clone(), span: name.span, body: Vec::new() };
                let id = self.program.chains.push(chain);
                self.decls.chains.push((id, unit, body));
                self.symbol(Space::Block, unit, name, SymbolKind::Chain(id));
            }
            DeclKind::Xdp { name, items } => self.declare_xdp(unit, name, items),
            DeclKind::Test { name, of, steps } => {
                self.decls.tests.push(TestDecl { unit, name, of: of.as_ref(), steps });
            }
        }
    }

    fn declare_enum(
        &mut self,
        unit: usize,
        name: &'a Word,
        ty: &'a ast::Type,
        members: &'a [ast::EnumMember],
    ) {
        let bits = self.enum_bits(ty);
        let id = self.program.enums.push(Enum {
            name: name.text.clone(),
            bits,
            members: Vec::new(),
            span: name.span,
        });
        self.decls.enums.push((id, unit, members));
        self.value(unit, name, SymbolKind::Enum(id));
    }

    fn declare_union(&mut self, unit: usize, union: &'a ast::Union, doc: &str) {
        let id = self.program.unions.push(Union {
            name: union.name.text.clone(),
            doc: doc.to_owned(),
            span: union.name.span,
            members: Vec::new(),
            repeats: None,
            fields: Vec::new(),
        });
        self.decls.unions.push((id, unit, union));
        self.value(unit, &union.name, SymbolKind::Union(id));
    }

    fn declare_xdp(&mut self, unit: usize, name: &'a Word, items: &'a [ast::XdpItem]) {
        if name.text.len() > Xdp::NAME_MAX {
            let label = format!("{} characters", name.text.len());
            let diagnostic = Diagnostic::error(
                codes::BAD_NAME,
                format!("the program name `{}` is too long", name.text),
                name.span,
                label,
            )
            .with_note("the kernel keeps 15 characters of a program's name")
            .with_help("choose a name of at most 15 characters");
            self.report(diagnostic);
        }
        let other = self.program.xdps.values().find(|xdp| xdp.name == name.text).map(|xdp| xdp.span);
        if let Some(other) = other.filter(|other| other.file != name.span.file) {
            self.clash(&name.text, name.span, other, "a program is known by its name: each needs its own");
        }
        let id = self.program.xdps.push(Xdp {
            name: name.text.clone(),
            span: name.span,
            default: Vec::new(),
            default_span: name.span,
            counters: true,
            body: Vec::new(),
            priority: None,
            chain_on: None,
            on: Vec::new(),
        });
        self.decls.xdps.push((id, unit, items));
        self.symbol(Space::Block, unit, name, SymbolKind::Xdp(id));
    }

    fn later(&mut self, unit: usize, name: &'a Word, what: &'static str) {
        self.not_yet(&format!("{}s", what.trim_start_matches("a ")), name.span);
        self.value(unit, name, SymbolKind::Later(what));
    }

    fn value(&mut self, unit: usize, name: &'a Word, kind: SymbolKind<'a>) {
        self.symbol(Space::Value, unit, name, kind);
    }

    fn symbol(&mut self, space: Space, unit: usize, name: &'a Word, kind: SymbolKind<'a>) {
        let id = self.symbols.len();
        self.symbols.push(Symbol { name, unit, kind });
        self.used.push(false);
        let key = (space, name.text.clone());
        if let Some(&other) = self.scopes.own[unit].get(&key) {
            let other = self.symbols[other].name.span;
            self.clash(&name.text, name.span, other, "a name is declared once in a file");
            return;
        }
        self.scopes.own[unit].insert(key.clone(), id);
        if self.units[unit].is_std {
            self.scopes.std.insert(key, id);
        } else if let Some(&hidden) = self.scopes.std.get(&key) {
            let hidden = self.symbols[hidden];
            let title = format!("`{}` hides {} of the standard library", name.text, hidden.kind.describe());
            let note =
                Diagnostic::note(codes::SHADOWS, title, name.span, "in this file the name means this one")
                    .with_label(hidden.name.span, "this one is hidden");
            self.report(note);
        }
    }

    fn clash(&mut self, name: &str, span: Span, other: Span, why: &str) {
        let diagnostic =
            Diagnostic::error(codes::NAME_CLASH, format!("`{name}` is declared twice"), span, "again here")
                .with_label(other, "first here")
                .with_note(why)
                .with_help("rename one of them");
        self.report(diagnostic);
    }

    fn import(&mut self, unit: usize) {
        let units = self.units;
        let mut imported: HashMap<(Space, String), SymbolId> = HashMap::new();
        let mut libraries = HashMap::new();
        for used in &units[unit].uses {
            if let Some(alias) = &used.alias {
                libraries.insert(alias.text.clone(), used.unit);
                continue;
            }
            let Some(used_unit) = used.unit else { continue };
            let mut names: Vec<_> = self.scopes.own[used_unit].clone().into_iter().collect();
            names.sort_by_key(|&(_, id)| id);
            for (key, id) in names {
                let other = self.scopes.own[unit].get(&key).or_else(|| imported.get(&key)).copied();
                match other {
                    Some(other) if other != id => self.import_clash(used.span, id, other),
                    _ => {
                        imported.insert(key, id);
                    }
                }
            }
        }
        self.scopes.imported.push(imported);
        self.scopes.libraries.push(libraries);
    }

    fn import_clash(&mut self, span: Span, new: SymbolId, old: SymbolId) {
        let (new, old) = (self.symbols[new], self.symbols[old]);
        let name = &new.name.text;
        let diagnostic = Diagnostic::error(
            codes::NAME_CLASH,
            format!("two files declare `{name}`"),
            span,
            format!("this file's `{name}` clashes"),
        )
        .with_label(old.name.span, "declared here")
        .with_label(new.name.span, "and here")
        .with_help(format!("give the file a name, `use … as lib;`, and write `lib.{name}`"));
        self.report(diagnostic);
    }

    /// What `name` means in `unit`.
    pub(crate) fn lookup(&mut self, space: Space, unit: usize, name: &str) -> Option<SymbolId> {
        let key = (space, name.to_owned());
        let own = self.scopes.own[unit].get(&key);
        let found =
            own.or_else(|| self.scopes.imported[unit].get(&key)).or_else(|| self.scopes.std.get(&key));
        found.copied().inspect(|&id| self.used[id] = true)
    }

    /// What `name` means in the library that `unit` calls `alias`.
    pub(crate) fn lookup_in_library(
        &mut self,
        space: Space,
        unit: usize,
        alias: &str,
        name: &str,
    ) -> Option<SymbolId> {
        let library = (*self.scopes.libraries[unit].get(alias)?)?;
        let found = self.scopes.own[library].get(&(space, name.to_owned())).copied();
        found.inspect(|&id| self.used[id] = true)
    }

    /// Whether a name that `unit` does not know may stand in a file that could not be read, which is reported
    /// already. `library`: the name was looked for in that one.
    pub(crate) fn may_be_unread(&self, unit: usize, library: Option<&str>) -> bool {
        match library {
            Some(alias) => self.scopes.libraries[unit].get(alias).is_some_and(Option::is_none),
            None => self.units[unit].is_incomplete,
        }
    }

    /// The names in the library that `unit` calls `alias`, sorted.
    pub(crate) fn visible_in_library(&self, space: Space, unit: usize, alias: &str) -> Vec<&'a str> {
        let Some(Some(library)) = self.scopes.libraries[unit].get(alias) else { return Vec::new() };
        let names = self.scopes.own[*library].iter().filter(|((found, _), _)| *found == space);
        let mut names: Vec<&'a str> = names.map(|(_, &id)| self.symbols[id].name.text.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Whether `unit` calls a library `alias`.
    pub(crate) fn is_library(&self, unit: usize, alias: &str) -> bool {
        self.scopes.libraries[unit].contains_key(alias)
    }

    /// The names that `unit` sees and `wanted` accepts, sorted.
    pub(crate) fn visible(
        &self,
        space: Space,
        unit: usize,
        wanted: impl Fn(&SymbolKind<'a>) -> bool,
    ) -> Vec<&'a str> {
        let own = self.scopes.own[unit].iter();
        let all = own.chain(self.scopes.imported[unit].iter()).chain(self.scopes.std.iter());
        let mut names: Vec<&'a str> = all
            .filter(|&((found, _), &id)| *found == space && wanted(&self.symbols[id].kind))
            .map(|(_, &id)| self.symbols[id].name.text.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Resolves `name` to something that `pick` takes; reports what it is instead, or that it is unknown.
    pub(crate) fn expect_symbol<T>(
        &mut self,
        space: Space,
        unit: usize,
        name: &Word,
        wanted: &str,
        pick: impl Fn(&SymbolKind<'a>) -> Option<T>,
    ) -> Option<T> {
        let Some(id) = self.lookup(space, unit, &name.text) else {
            if self.may_be_unread(unit, None) {
                return None;
            }
            let known = self.visible(space, unit, |kind| pick(kind).is_some());
            let found = nearest(&name.text, known).map(str::to_owned);
            self.unknown(&format!("{wanted} `{}`", name.text), name.span, found.as_deref());
            return None;
        };
        let symbol = self.symbols[id];
        let picked = pick(&symbol.kind);
        if picked.is_none() && !matches!(symbol.kind, SymbolKind::Later(_)) {
            self.wrong_kind(name, symbol, wanted);
        }
        picked
    }

    fn wrong_kind(&mut self, name: &Word, symbol: Symbol<'a>, wanted: &str) {
        let title = format!("`{}` is {}, not a {wanted}", name.text, symbol.kind.describe());
        let diagnostic =
            Diagnostic::error(codes::WRONG_NAME, title, name.span, format!("a {wanted} is needed here"))
                .with_label(symbol.name.span, "declared here");
        self.report(diagnostic);
    }

    /// Reports that `what` does not exist.
    pub(crate) fn unknown(&mut self, what: &str, span: Span, suggestion: Option<&str>) {
        let mut diagnostic =
            Diagnostic::error(codes::UNKNOWN_NAME, format!("there is no {what}"), span, "not declared");
        if let Some(name) = suggestion {
            diagnostic = diagnostic.with_help(format!("did you mean `{name}`?"));
        }
        self.report(diagnostic);
    }

    /// Reports that this version lacks `what`.
    pub(crate) fn not_yet(&mut self, what: &str, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::NOT_YET,
            format!("this version of pktc has no {what} yet"),
            span,
            "not yet",
        )
        .with_note("the language has it, and the text is well formed; a later version will take it");
        self.report(diagnostic);
    }
}
