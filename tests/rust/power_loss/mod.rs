//! A model of a disk: derives from the crate's file operations what a folder may contain after a loss of power.
//!
//! The model knows files and folders by identity. Names belong to their folder, content to its file:
//!
//! - The creation, move or removal of a name is certain once its folder is synced. For a move: the target folder.
//! - Content is certain once its file is synced.
//!
//! Any part of everything else may be lost. A rename is one step: it is lost as a whole, or not at all. If a new
//! folder is lost, its uncertain names are lost with it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use seglake::faults::watch;

/// Up to this many uncertain steps every subset is tried. Beyond it: all, none, each one alone, all but each one.
const ALL_SUBSETS: usize = 4;

/// Paths below the folder, with the content of files; `None` for a folder.
pub(crate) type State = BTreeMap<String, Option<Rc<[u8]>>>;

type Names = BTreeMap<(usize, String), usize>;
type Contents = BTreeMap<usize, Rc<[u8]>>;

#[derive(Debug)]
enum Step {
    /// Names that are removed and set in one step. Each is in a folder, and is of a file or folder.
    Names {
        removed: Option<(usize, String)>,
        set: Option<(usize, String, usize)>,
    },
    /// A write: the file has this content.
    Content(usize, Rc<[u8]>),
    /// A sync: the earlier writes to this file, or changes of names in this folder, are certain.
    Sync(usize),
}

impl Step {
    /// The file or folder whose sync makes it certain.
    fn owner(&self) -> Option<usize> {
        match self {
            Self::Names {
                set: Some((folder, ..)),
                ..
            }
            | Self::Names {
                removed: Some((folder, _)),
                ..
            } => Some(*folder),
            Self::Content(file, _) => Some(*file),
            _ => None,
        }
    }
}

/// A folder, the operations on it, and its content.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    /// By device and inode; the folder itself is 0.
    ids: BTreeMap<(u64, u64), usize>,
    known: usize,
    folders: BTreeSet<usize>,
    names: Names,
    contents: Contents,
    first: (Names, Contents),
    steps: Vec<Step>,
}

impl Disk {
    /// Marks the folder's current content as certain.
    pub(crate) fn new(root: &Path) -> Rc<RefCell<Self>> {
        let mut disk = Self {
            root: root.to_path_buf(),
            ids: BTreeMap::new(),
            known: 0,
            folders: BTreeSet::from([0]),
            names: Names::new(),
            contents: Contents::new(),
            first: (Names::new(), Contents::new()),
            steps: Vec::new(),
        };
        disk.id(&fs::metadata(root).unwrap());
        disk.look();
        disk.first = (disk.names.clone(), disk.contents.clone());
        disk.steps.clear();
        Rc::new(RefCell::new(disk))
    }

    /// Does `work`, and notes each change that it makes in the folder.
    pub(crate) fn watch<T>(disk: &Rc<RefCell<Self>>, work: impl FnOnce() -> T) -> T {
        let watching = disk.clone();
        let done = watch(move |_, synced| watching.borrow_mut().see(synced), work);
        disk.borrow_mut().look();
        done
    }

    /// The number of steps so far.
    pub(crate) fn moment(&mut self) -> usize {
        self.look();
        self.steps.len()
    }

    fn see(&mut self, synced: Option<&File>) {
        self.look();
        if let Some(synced) = synced {
            let own = key(&synced.metadata().unwrap());
            // A file without a name is gone after a loss of power.
            self.steps
                .extend(self.ids.get(&own).map(|id| Step::Sync(*id)));
        }
    }

    fn look(&mut self) {
        let (mut names, mut contents) = (Names::new(), Contents::new());
        let root = self.root.clone();
        self.walk(&root, 0, &mut names, &mut contents);
        let is_gone = |(at, own): &(&(usize, String), &usize)| names.get(*at) != Some(*own);
        let mut gone: Names = self
            .names
            .iter()
            .filter(is_gone)
            .map(|(at, own)| (at.clone(), *own))
            .collect();
        for (at, own) in &names {
            if self.names.get(at) == Some(own) {
                continue;
            }
            let removed = gone.iter().find(|(_, other)| *other == own);
            let removed = removed.map(|(from, _)| from.clone());
            if let Some(from) = &removed {
                gone.remove(from);
            }
            let (folder, name) = at.clone();
            let set = Some((folder, name, *own));
            self.steps.push(Step::Names { removed, set });
        }
        // A name that another file took was removed by the step that set it.
        for at in gone.into_keys().filter(|at| !names.contains_key(at)) {
            let removed = Some(at);
            self.steps.push(Step::Names { removed, set: None });
        }
        for (file, content) in &contents {
            let before = self.contents.get(file).map_or(&[][..], |own| own);
            if *before != **content {
                self.steps.push(Step::Content(*file, content.clone()));
            }
        }
        // The file system reuses the inodes of removed files.
        let present: BTreeSet<_> = names.values().copied().chain([0]).collect();
        self.ids.retain(|_, id| present.contains(id));
        (self.names, self.contents) = (names, contents);
    }

    fn walk(&mut self, path: &Path, folder: usize, names: &mut Names, contents: &mut Contents) {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            let id = self.id(&metadata);
            names.insert((folder, entry.file_name().into_string().unwrap()), id);
            if metadata.is_dir() {
                self.folders.insert(id);
                self.walk(&entry.path(), id, names, contents);
            } else {
                contents.insert(id, fs::read(entry.path()).unwrap().into());
            }
        }
    }

    fn id(&mut self, metadata: &Metadata) -> usize {
        let next = self.known;
        let id = *self.ids.entry(key(metadata)).or_insert(next);
        self.known += usize::from(id == next);
        id
    }

    /// The state after each step if nothing is lost, as when only the process dies.
    pub(crate) fn kept(&self) -> Vec<State> {
        let whole = BTreeSet::from_iter(0..self.steps.len());
        let at = |moment| self.state(moment, &BTreeSet::new(), &whole);
        (0..=self.steps.len()).map(at).collect()
    }

    /// Each state that a loss of power may leave after at least this many steps, with the number of steps.
    pub(crate) fn states(&self, start: usize) -> Vec<(usize, State)> {
        let mut states = Vec::new();
        for moment in start..=self.steps.len() {
            let mut certain = BTreeSet::new();
            let mut uncertain = Vec::new();
            for (at, step) in self.steps.iter().enumerate().take(moment) {
                let Some(owner) = step.owner() else { continue };
                let later = self.steps.iter().take(moment).skip(at);
                let mut syncs = later.filter(|own| matches!(own, Step::Sync(of) if *of == owner));
                if syncs.next().is_some() {
                    certain.insert(at);
                } else {
                    uncertain.push(at);
                }
            }
            let mut seen = HashSet::new();
            for lost in choices(&uncertain) {
                let state = self.state(moment, &lost, &certain);
                if seen.insert(state.clone()) {
                    states.push((moment, state));
                }
            }
        }
        states
    }

    fn state(&self, moment: usize, lost: &BTreeSet<usize>, certain: &BTreeSet<usize>) -> State {
        let (mut names, mut contents) = self.first.clone();
        let steps = self.steps.iter().enumerate().take(moment);
        for (at, step) in steps.filter(|(at, _)| !lost.contains(at)) {
            match step {
                Step::Content(file, content) => drop(contents.insert(*file, content.clone())),
                Step::Names { removed, set } => {
                    let folder = step.owner().unwrap_or_default();
                    let is_there = folder == 0 || names.values().any(|own| *own == folder);
                    if !is_there && !certain.contains(&at) {
                        continue;
                    }
                    if let Some(removed) = removed {
                        names.remove(removed);
                    }
                    if let Some((folder, name, id)) = set {
                        names.insert((*folder, name.clone()), *id);
                    }
                }
                Step::Sync(_) => {}
            }
        }
        let mut state = State::new();
        let mut below = vec![(String::new(), 0)];
        while let Some((path, folder)) = below.pop() {
            for ((_, name), id) in names.iter().filter(|((own, _), _)| *own == folder) {
                let own = format!("{path}{name}");
                if self.folders.contains(id) {
                    below.push((format!("{own}/"), *id));
                    state.insert(own, None);
                } else {
                    let content = contents.get(id).cloned().unwrap_or_default();
                    state.insert(own, Some(content));
                }
            }
        }
        state
    }
}

fn key(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The sets of uncertain steps to lose.
fn choices(uncertain: &[usize]) -> Vec<BTreeSet<usize>> {
    if uncertain.len() <= ALL_SUBSETS {
        let subsets = 0..1_usize << uncertain.len();
        let lost = |subset: usize| {
            let places = uncertain.iter().enumerate();
            let lost = places.filter(|(place, _)| subset >> place & 1 == 1);
            lost.map(|(_, at)| *at).collect()
        };
        return subsets.map(lost).collect();
    }
    let all = BTreeSet::from_iter(uncertain.iter().copied());
    let missing = uncertain.iter().map(|at| {
        let mut kept = all.clone();
        kept.remove(at);
        kept
    });
    let alone = uncertain.iter().map(|at| BTreeSet::from([*at]));
    [BTreeSet::new(), all.clone()]
        .into_iter()
        .chain(alone)
        .chain(missing)
        .collect()
}
