//! Repairing in place (rule 19).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::manifest::{Header, Lengths, Lines, Manifest, Piece, Place, State, manifest_of};
use super::pair::Pair;
use super::plan::{Kept, Plan, SidecarPlan};
use super::proof::{is_proven_once_repaired, refuse_proven};
use super::undo::{first_name, latest, next};
use super::{Job, Repaired, without_hole};
use crate::bug::OrBug;
use crate::checksum::{Key, hash};
use crate::engine::{Options, each_piece};
use crate::error::{Error, Result, name};
use crate::output::{NewFile, commit_together};
use crate::parity::{self, Coverage, Files, Report};
use crate::source::{FileSource, Source};
use crate::verbs::stages::Stages;
use crate::verbs::watched::Watched;

/// A repair that was planned.
struct Planned {
    plan: Arc<Plan>,
    sidecar: SidecarPlan,
    file_source: FileSource,
    sidecar_source: FileSource,
    /// Of the sidecar's frames, if there are any.
    coverage: Option<Coverage>,
    /// A repair of these files that was interrupted.
    before: Option<(PathBuf, Manifest)>,
    /// What was judged, if not all.
    range: Option<(u64, u64)>,
}

impl Job<'_> {
    pub(super) fn repair_in_place(
        &self,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Repaired> {
        let pair = Pair::open(self)?;
        let file = pair.file.source()?;
        let mut stages = self.stages(&file, progress);
        let (planned, report) = self.plan(file, pair.sidecar.source()?, &mut stages)?;
        let modified = self.modified(&pair, &planned)?;
        if !planned.is_empty() {
            self.refuse(&pair, &planned, modified)?;
        }
        let (file, plan) = (&planned.file_source, &planned.plan);
        let verified = self.verify(file, plan, planned.range, &mut stages)?;
        stages.next();
        let mut repaired = Repaired {
            path: self.path.to_path_buf(),
            sidecar: self.sidecar.to_path_buf(),
            report,
            verified,
            changed: planned.plan.changed(),
            undo: None,
            manifest: None,
            continued: planned.before.is_some(),
        };
        if planned.is_empty() {
            if let Some((_, manifest)) = &planned.before {
                // All was written, and not yet noted.
                self.finish(&pair, modified, manifest)?;
            }
            stages.finish()?;
            return Ok(repaired);
        }
        let undo = self.keep(&planned, modified)?;
        self.write(&pair, &planned, modified)?;
        drop(pair);
        self.confirm(&repaired.report, planned.range, &mut stages)?;
        Manifest::read(self.disk, &undo)?.mark(self.disk, State::Repaired)?;
        stages.finish()?;
        repaired.manifest = Some(manifest_of(&undo));
        repaired.undo = Some(undo);
        Ok(repaired)
    }

    /// Judges both files, and plans what to change.
    fn plan(
        &self,
        file: FileSource,
        sidecar: FileSource,
        stages: &mut Stages<'_>,
    ) -> Result<(Planned, Report)> {
        // Beside what is kept: the folder of the file may be one that nothing else is to be written to.
        let mut plan = Plan::new(self.disk, &first_name(self))?;
        let watched = Watched::new(&file, self.options);
        let coverage = Coverage::read(Files::new(&watched, &sidecar))?;
        let before = self.interrupted(coverage.as_ref())?;
        // What was interrupted may have changed other bands.
        let range = self.repairing.range.filter(|_| before.is_none());
        let range = range.map(|range| without_hole(range, &file, coverage.as_ref()));
        let report = self.judge(&mut plan, &file, &watched, &sidecar, range, stages)?;
        let planned = Planned {
            before,
            range,
            sidecar: plan.sidecar(&sidecar)?,
            plan: Arc::new(plan),
            file_source: file,
            sidecar_source: sidecar,
            coverage,
        };
        Ok((planned, report))
    }

    /// Reads both files back.
    fn confirm(
        &self,
        before: &Report,
        range: Option<(u64, u64)>,
        stages: &mut Stages<'_>,
    ) -> Result<()> {
        let open = |path: &Path| FileSource::open(self.disk, path);
        let (file, sidecar) = (open(self.path)?, open(self.sidecar)?);
        let watched = Watched::new(&file, self.options);
        let files = Files::new(&watched, &sidecar);
        let after = parity::repair(files, self.judging(range), &mut |_| {
            stages.tell(watched.read())
        })?;
        self.check_repaired(self.path, before, &after)
    }

    /// The latest repair of these files, if it was interrupted, or undoing it was.
    fn interrupted(&self, coverage: Option<&Coverage>) -> Result<Option<(PathBuf, Manifest)>> {
        let Some(undo) = latest(self) else {
            return Ok(None);
        };
        // What is there may be of another file that had this name.
        let Ok(manifest) = Manifest::read(self.disk, &undo) else {
            return Ok(None);
        };
        let is_own = coverage.is_some_and(|coverage| manifest.header.is_of(coverage.set.id));
        let is_complete = matches!(manifest.state, State::Repaired | State::Undone);
        Ok((is_own && !is_complete).then_some((undo, manifest)))
    }

    /// When the file was modified, before a repair that was interrupted.
    fn modified(&self, pair: &Pair, planned: &Planned) -> Result<Option<SystemTime>> {
        let before = planned.before.as_ref();
        match before.and_then(|(_, manifest)| manifest.header.modified()) {
            Some(modified) => Ok(Some(modified)),
            None => pair.file.modified(),
        }
    }

    /// Refuses a sidecar of an earlier state of the file.
    fn refuse(&self, pair: &Pair, planned: &Planned, modified: Option<SystemTime>) -> Result<()> {
        if planned.plan.file.is_empty() || self.repairing.force {
            return Ok(());
        }
        let (file, plan) = (&planned.file_source, &planned.plan);
        if !self.repairing.raw && refuse_proven(file, plan, planned.range.is_some(), self.options)?
        {
            return Ok(());
        }
        let covered = planned.coverage.as_ref().map(|coverage| coverage.covered);
        let is_longer = covered.is_some_and(|covered| planned.file_source.len() > covered);
        let (Some(modified), Some(protected)) = (modified, pair.sidecar.modified()?) else {
            return Ok(());
        };
        if is_longer || modified <= protected {
            return Ok(());
        }
        if !self.repairing.raw && is_proven_once_repaired(file, plan, self.options)? {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{}: the file has no checksums that prove it, and was modified after it was protected. Nothing was changed. If it was changed on purpose, protect it with `as_it_is`, which begins a new sidecar. If it is damaged, `force` repairs it all the same",
            name(&Some(self.path.to_path_buf()))
        )))
    }

    /// Keeps the bytes that change, and gives their place.
    fn keep(&self, planned: &Planned, modified: Option<SystemTime>) -> Result<PathBuf> {
        let undo = next(self).or_bug("a name that is free")?;
        let create = |path: &Path| NewFile::create_like(self.disk, path, false, self.path);
        let (mut bytes, mut manifest) = (create(&undo)?, create(&manifest_of(&undo))?);
        let mut header = self.header(planned);
        header.set_modified(modified);
        let mut lines = Lines::new(&mut manifest);
        let mut kept = Kept::new(&mut bytes);
        lines.add(&header)?;
        let (plan, file) = (&planned.plan, &planned.file_source);
        plan.keep(Place::File, &plan.file, file, &mut kept, &mut |piece| {
            lines.add(&piece)
        })?;
        let sidecar = &planned.sidecar_source;
        match &planned.sidecar {
            SidecarPlan::InPlace { ranges, .. } => {
                plan.keep(Place::Sidecar, ranges, sidecar, &mut kept, &mut |piece| {
                    lines.add(&piece)
                })?;
                // What is cut off.
                keep_whole(sidecar, self.cut_from(planned)?, &mut kept, &mut |piece| {
                    lines.add(&piece)
                })?;
            }
            SidecarPlan::Anew => {
                keep_whole(sidecar, 0, &mut kept, &mut |piece| lines.add(&piece))?;
            }
        }
        kept.finish()?;
        lines.flush()?;
        commit_together(self.disk, vec![bytes, manifest])?;
        Ok(undo)
    }

    /// Where the end of the sidecar begins that is cut off.
    fn cut_from(&self, planned: &Planned) -> Result<u64> {
        match planned.sidecar {
            SidecarPlan::InPlace { len, .. } => Ok(len.min(planned.sidecar_source.len())),
            SidecarPlan::Anew => None.or_bug("a sidecar that is changed in place"),
        }
    }

    fn header(&self, planned: &Planned) -> Header {
        let (file, sidecar) = (planned.file_source.len(), planned.sidecar_source.len());
        let id = planned.coverage.as_ref().map(|coverage| coverage.set.id);
        let pieces = |from: u64| (sidecar - from).div_ceil(super::PIECE_BYTES as u64);
        let (sidecar_after, sidecar_pieces) = match &planned.sidecar {
            SidecarPlan::InPlace { ranges, len } => {
                (*len, ranges.len() as u64 + pieces((*len).min(sidecar)))
            }
            SidecarPlan::Anew => (planned.plan.sidecar_len(), pieces(0)),
        };
        let mut header = Header::new(
            Lengths::new(self.path, file, planned.plan.file_len(file)),
            Lengths::new(self.sidecar, sidecar, sidecar_after),
            id.unwrap_or_default(), // without frames nothing is repaired
        );
        header.sidecar_anew = matches!(planned.sidecar, SidecarPlan::Anew);
        header.pieces = planned.plan.file.len() as u64 + sidecar_pieces;
        let before = planned
            .before
            .as_ref()
            .and_then(|(undo, _)| undo.file_name());
        header.continues = before.map(|name| name.to_string_lossy().into_owned());
        header
    }

    /// Writes the file, then the sidecar, each synced.
    fn write(&self, pair: &Pair, planned: &Planned, modified: Option<SystemTime>) -> Result<()> {
        let plan = &planned.plan;
        if !plan.file.is_empty() {
            plan.apply(&plan.file, &pair.file)?;
            if let Some(modified) = modified {
                pair.file.set_modified(modified)?;
            }
            pair.file.sync()?;
        }
        match &planned.sidecar {
            _ if planned.keeps_sidecar() => Ok(()),
            SidecarPlan::InPlace { ranges, len } => {
                plan.apply(ranges, &pair.sidecar)?;
                if *len < planned.sidecar_source.len() {
                    pair.sidecar.set_len(*len)?;
                }
                pair.sidecar.sync()
            }
            SidecarPlan::Anew => {
                let path = pair.sidecar.path();
                let mut new = NewFile::create_like(self.disk, path, true, self.path)?;
                plan.write_sidecar(&planned.sidecar_source, &mut new)?;
                new.commit()
            }
        }
    }

    /// Notes that a repair that was interrupted is complete.
    fn finish(&self, pair: &Pair, modified: Option<SystemTime>, manifest: &Manifest) -> Result<()> {
        if let Some(modified) = modified {
            pair.file.set_modified(modified)?;
        }
        pair.file.sync()?;
        pair.sidecar.sync()?;
        manifest.mark(self.disk, State::Repaired)
    }
}

impl Planned {
    fn is_empty(&self) -> bool {
        self.plan.file.is_empty() && self.keeps_sidecar()
    }

    fn keeps_sidecar(&self) -> bool {
        let SidecarPlan::InPlace { ranges, len } = &self.sidecar else {
            return false;
        };
        ranges.is_empty() && *len == self.sidecar_source.len()
    }
}

/// Keeps all bytes of a sidecar from an offset on.
fn keep_whole(
    sidecar: &FileSource,
    start: u64,
    kept: &mut Kept,
    give: &mut dyn FnMut(Piece) -> Result<()>,
) -> Result<()> {
    let mut at = start;
    each_piece(
        sidecar,
        &Options::default(),
        start..sidecar.len(),
        |bytes| {
            let end = at + bytes.len() as u64;
            // There is no range of the new sidecar that it is replaced by.
            let piece = Piece::new(Place::Sidecar, at, end, hash(&Key::DEFAULT, &[]));
            at = end;
            give(kept.add(piece, bytes)?)
        },
    )
}
