//! Object stores: confirm that the object was not replaced before damage or a miss is reported.

use std::sync::Arc;

use super::around::{Around, Change};
use super::{Step, Walk};
use crate::error::{Error, Result};
use crate::source::Source;

/// [Confirms](Source::confirm) a walk's source before damage is reported, and at the end of the walk.
pub(crate) struct Confirming {
    walk: Box<dyn Walk>,
    source: Arc<dyn Source>,
}

impl Confirming {
    /// Wraps a walk.
    pub(crate) fn around(walk: Box<dyn Walk>, source: Arc<dyn Source>) -> Box<dyn Walk> {
        Box::new(Around(Self { walk, source }))
    }

    fn confirmed(&self, step: Result<Step>) -> Result<Step> {
        let step = confirmed_damage(step, &*self.source)?;
        if step != Step::More || self.walk.found_damage() {
            self.source.confirm()?;
        }
        Ok(step)
    }
}

impl Change for Confirming {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        let step = self.walk.step();
        self.confirmed(step)
    }

    fn settle(&mut self) -> Result<Step> {
        let settled = self.walk.settle();
        self.confirmed(settled)
    }
}

/// Returns the result. If it is damage, the source is confirmed first.
pub(crate) fn confirmed_damage<T>(result: Result<T>, source: &dyn Source) -> Result<T> {
    if let Err(Error::Damage(_)) = &result {
        source.confirm()?;
    }
    result
}
