//! Any bytes as the sidecar of any file: reading by it, repairing and extending end, and agree on what it says.

use std::sync::Arc;

use seglake::format::{Filter, Format, Start, Step, lookup, open};
use seglake::parity::{self, Files, ProtectedSource, verify};
use seglake::source::{BytesSource, Source};
use seglake::{Error, verbs};

use super::protected::Pair;
use super::{Draw, readings};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    let mut pair = Pair::any(bytes, &mut draw);
    pair.damage(&mut draw);
    for force in [false, true] {
        pair.repaired(force);
    }
    if !pair.sidecar.is_empty() {
        pair.extended(pair.file.len() as u64);
    }
    let source = |bytes: &[u8]| Arc::new(BytesSource::new(bytes.to_vec()));
    let (file, sidecar) = (source(&pair.file), source(&pair.sidecar));
    let whole = verify(Files::new(&*file, &*sidecar), parity::Options::default()).unwrap();
    for options in readings(format) {
        let view: Arc<dyn Source> = ProtectedSource::open(file.clone(), sidecar.clone()).unwrap();
        let report = verbs::verify(view.clone(), &options, |_| Ok(())).unwrap();
        let own = &report.parity.as_ref().unwrap().report;
        assert_eq!((own.outcome, own.refused), (whole.outcome, whole.refused));
        assert_eq!((&own.file, &own.sidecar), (&whole.file, &whole.sidecar));
        assert_eq!((&own.lost, own.worst), (&whole.lost, whole.worst));
        for (strict, repair) in [(false, true), (true, false), (true, true)] {
            let options = options.clone().strict(strict).repair(repair);
            let read = read(&view, &options);
            assert!(strict || read.is_none(), "{read:?}");
        }
        // Nothing but damage and limits hinders looking up.
        let found =
            lookup(view, &options).and_then(|found| found.range(&Filter::default()).map(drop));
        assert!(
            matches!(
                found,
                Ok(()) | Err(Error::Damage(_) | Error::Limit { .. } | Error::Format { .. })
            ),
            "{found:?}"
        );
    }
}

/// The error of reading to the end, if there is one.
fn read(view: &Arc<dyn Source>, options: &seglake::Options) -> Option<Error> {
    let mut walk = match open(view.clone(), options, Start::Beginning) {
        Ok(walk) => walk,
        Err(error) => return Some(error),
    };
    loop {
        match walk.step() {
            Ok(Step::More) => {}
            Ok(_) => return None,
            Err(error) => return Some(error),
        }
    }
}
