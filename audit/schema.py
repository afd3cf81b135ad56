"""The tables of the audit's SQLite file. Its logs are append-only: triggers refuse to change or delete an entry."""

SCHEMA_VERSION = 2

REASSIGNMENTS = """
CREATE TABLE reassignments (             -- an open step that went from one reviewer to another
    entry INTEGER PRIMARY KEY AUTOINCREMENT,
    step TEXT NOT NULL REFERENCES steps (id),
    giver TEXT NOT NULL REFERENCES reviewers (name),
    taker TEXT NOT NULL REFERENCES reviewers (name),
    at TEXT NOT NULL
);
CREATE TRIGGER reassignments_are_kept BEFORE UPDATE ON reassignments
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER reassignments_are_whole BEFORE DELETE ON reassignments
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END
"""
UPGRADES = {1: REASSIGNMENTS}
"""The tables that a file of an earlier schema lacks. It holds people's work, so it is upgraded and not refused."""

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps (                     -- the sampled ones; a step once sampled stays sampled
    place INTEGER PRIMARY KEY,           -- order in every queue
    id TEXT NOT NULL UNIQUE,
    benchmark TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    tier TEXT NOT NULL,
    tier_id INTEGER NOT NULL,
    lowest INTEGER NOT NULL,
    below TEXT NOT NULL
);
CREATE INDEX steps_by_instance ON steps (benchmark, instance_id);
CREATE TABLE reviewers (
    name TEXT PRIMARY KEY,
    everything INTEGER NOT NULL          -- their queue is all steps; else those in `assignments`
) WITHOUT ROWID;
CREATE TABLE assignments (                 -- as they are now; `reassignments` has those that were moved
    reviewer TEXT NOT NULL REFERENCES reviewers (name),
    step TEXT NOT NULL REFERENCES steps (id),
    PRIMARY KEY (reviewer, step)
) WITHOUT ROWID;
CREATE TABLE log (                       -- a verdict, or one taken back
    entry INTEGER PRIMARY KEY AUTOINCREMENT,
    reviewer TEXT NOT NULL REFERENCES reviewers (name),
    step TEXT NOT NULL REFERENCES steps (id),
    undoes INTEGER UNIQUE REFERENCES log (entry), -- set: this entry takes that one back
    verdict TEXT,
    notes TEXT NOT NULL DEFAULT '',
    prefix TEXT NOT NULL DEFAULT '',     -- exact digest of what the reviewer was shown
    source TEXT NOT NULL,
    at TEXT NOT NULL,
    CHECK ((verdict IS NULL) = (undoes IS NOT NULL))
);
CREATE INDEX log_by_step ON log (step, reviewer, entry);
CREATE INDEX log_by_reviewer ON log (reviewer, entry);
CREATE TABLE prelabels (
    step TEXT PRIMARY KEY REFERENCES steps (id),
    verdict TEXT NOT NULL,
    notes TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE former (                    -- verdicts of an earlier version that do not hold here
    step TEXT NOT NULL REFERENCES steps (id),
    reviewer TEXT NOT NULL,
    verdict TEXT NOT NULL,
    notes TEXT NOT NULL,
    at TEXT NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (step, reviewer)
) WITHOUT ROWID;
CREATE TABLE revisions (                 -- a revision applied, or the newest one taken back
    entry INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('applied', 'undone')),
    manifest TEXT NOT NULL,              -- digest of the revision's manifest
    at TEXT NOT NULL
);
CREATE TRIGGER log_is_kept BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_is_whole BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER revisions_are_kept BEFORE UPDATE ON revisions
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER revisions_are_whole BEFORE DELETE ON revisions
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
""" + REASSIGNMENTS.lstrip()

TO_REVIEW = "NOT steps.lowest"
"""Whether people are asked about a step. One of the lowest label settles itself: nothing is below it."""

STANDING = """
SELECT log.step, log.reviewer, log.verdict, log.notes, log.prefix, log.at, log.source, log.entry FROM log
WHERE log.verdict IS NOT NULL
AND log.entry = (
    SELECT max(later.entry) FROM log AS later
    WHERE later.step = log.step AND later.reviewer = log.reviewer AND later.verdict IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM log AS back WHERE back.undoes = later.entry)
)
"""
"""Verdicts that stand; further conditions may follow with AND."""
