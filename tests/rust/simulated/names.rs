//! The names in folders, and what the disk may hold of them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::Random;

/// A folder and a name in it.
type At = (usize, String);
type Map = BTreeMap<At, usize>;

/// A change that is lost or kept as one.
#[derive(Clone, Debug)]
struct Change {
    removed: Option<At>,
    set: Option<(At, usize)>,
}

impl Change {
    fn apply(&self, names: &mut Map) {
        if let Some(at) = &self.removed {
            names.remove(at);
        }
        if let Some((at, id)) = &self.set {
            names.insert(at.clone(), *id);
        }
    }

    /// The folder whose sync makes it certain.
    fn folder(&self) -> Option<usize> {
        let set = self.set.as_ref().map(|((folder, _), _)| *folder);
        set.or(self.removed.as_ref().map(|(folder, _)| *folder))
    }
}

/// The root folder is 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    now: Map,
    certain: Map,
    uncertain: Vec<Change>,
}

impl Names {
    fn at(&self, path: &Path) -> io::Result<At> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let folder = self.find(path.parent().ok_or(ErrorKind::InvalidInput)?)?;
        Ok((folder, name.to_str().unwrap().to_owned()))
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<usize> {
        if path == Path::new("/") {
            return Ok(0);
        }
        let at = self.at(path)?;
        self.now
            .get(&at)
            .copied()
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn refuse_taken(&self, path: &Path) -> io::Result<()> {
        match self.find(path) {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let id = self.find(folder)?;
        let own = self.now.keys().filter(|(own, _)| *own == id);
        Ok(own.map(|(_, name)| folder.join(name)).collect())
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.uncertain.push(change);
    }

    pub(super) fn set(&mut self, path: &Path, id: usize) -> io::Result<()> {
        let set = Some((self.at(path)?, id));
        self.change(Change { removed: None, set });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = self.find(from)?;
        let (removed, set) = (Some(self.at(from)?), Some((self.at(to)?, id)));
        self.change(Change { removed, set });
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        let removed = Some(self.at(path)?);
        self.change(Change { removed, set: None });
        Ok(())
    }

    pub(super) fn sync(&mut self, folder: &Path) -> io::Result<()> {
        let id = self.find(folder)?;
        let (certain, uncertain) = std::mem::take(&mut self.uncertain)
            .into_iter()
            .partition(|change: &Change| change.folder() == Some(id));
        self.uncertain = uncertain;
        let certain: Vec<_> = certain;
        certain
            .iter()
            .for_each(|change| change.apply(&mut self.certain));
        Ok(())
    }

    pub(super) fn settle(&mut self) {
        self.certain = self.now.clone();
        self.uncertain.clear();
    }

    pub(super) fn after_power_loss(&self, kept: usize, random: &mut Random) -> Self {
        let mut names = self.certain.clone();
        for change in &self.uncertain {
            if random.percent(kept) {
                change.apply(&mut names);
            }
        }
        Self {
            now: names.clone(),
            certain: names,
            uncertain: Vec::new(),
        }
    }

    /// Tells names from others.
    pub(super) fn hash(&self, hasher: &mut impl Hasher) {
        self.now.hash(hasher);
    }

    /// All paths below the root, with what they are of.
    pub(super) fn paths(&self) -> BTreeMap<String, usize> {
        let (mut paths, mut below) = (BTreeMap::new(), vec![(String::new(), 0)]);
        while let Some((path, folder)) = below.pop() {
            for ((_, name), id) in self.now.iter().filter(|((own, _), _)| *own == folder) {
                let own = format!("{path}/{name}");
                below.push((own.clone(), *id));
                paths.insert(own, *id);
            }
        }
        paths
    }

    /// All that has a name.
    pub(super) fn files(&self) -> BTreeSet<usize> {
        self.paths().into_values().collect()
    }
}
