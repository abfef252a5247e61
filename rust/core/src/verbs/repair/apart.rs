//! Repairing to another path: a file and its sidecar that both are new.

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::plan::Plan;
use super::proof::{Patched, refuse_proven};
use super::{Job, Repaired, without_hole};
use crate::engine::each_piece;
use crate::error::{Error, Result};
use crate::output::{NewFile, commit_together};
use crate::parity::{self, Coverage, Files};
use crate::source::{FileSource, Source};
use crate::verbs::protect::to_read;
use crate::verbs::watched::Watched;

impl Job<'_> {
    pub(super) fn repair_apart(
        &self,
        to: &Path,
        new_sidecar: &Path,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Repaired> {
        let overwrite = self.repairing.overwrite;
        let create = |path: &Path| NewFile::create_like(self.disk, path, overwrite, self.path);
        let file = FileSource::open(self.disk, self.path)?;
        let (mut new, mut new_par) = (create(to)?, create(new_sidecar)?);
        let sidecar = to_read(self.disk, self.sidecar)?.ok_or_else(|| self.no_sidecar())?;
        let mut stages = self.stages(&file, progress);
        let mut plan = Plan::new(self.disk, to)?;
        let watched = Watched::new(&file, self.options);
        let coverage = Coverage::read(Files::new(&watched, &sidecar))?;
        let range = self.repairing.range;
        let range = range.map(|range| without_hole(range, &file, coverage.as_ref()));
        let report = self.judge(&mut plan, &file, &watched, &sidecar, range, &mut stages)?;
        let plan = Arc::new(plan);
        if !plan.file.is_empty() && !self.repairing.raw && !self.repairing.force {
            refuse_proven(&file, &plan, range.is_some(), self.options)?;
        }
        let verified = self.verify(&file, &plan, range, &mut stages)?;
        let patched = Patched {
            file: &file,
            plan: &*plan,
        };
        let failed = |error| Error::io(Some(to), "cannot write the repaired file", error);
        let mut out = BufWriter::new(new.file().another());
        each_piece(&patched, self.options, 0..patched.len(), |bytes| {
            out.write_all(bytes).map_err(failed)
        })?;
        out.flush().map_err(failed)?;
        drop(out);
        plan.write_sidecar(&sidecar, &mut new_par)?;
        stages.next();
        let (written, written_par) = (new.source()?, new_par.source()?);
        let watched = Watched::new(&written, self.options);
        let files = Files::new(&watched, &written_par);
        let after = parity::repair(files, self.judging(range), &mut |_| {
            stages.tell(watched.read())
        })?;
        self.check_repaired(to, &report, &after)?;
        stages.finish()?;
        let changed = plan.changed();
        commit_together(self.disk, vec![new_par, new])?;
        Ok(Repaired {
            path: to.to_path_buf(),
            sidecar: new_sidecar.to_path_buf(),
            report,
            verified,
            changed,
            undo: None,
            manifest: None,
            continued: false,
        })
    }
}
