"""The schema, as migrations. A change is a new `mNNN_…` function at the end; one that has landed is never edited.

Scalars that people query have columns of their own; the whole typed value sits beside them as JSON. Text of any size
(sources, logs, contract files) is a blob named by its SHA-256.
"""

from typing import Any

from sqlite_utils import Migrations

migrations = Migrations("hiera")

_FIRST_SCHEMA = (
    """CREATE TABLE tasks (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, source_sha256 TEXT NOT NULL, created_at TEXT NOT NULL)""",
    """CREATE TABLE contracts (
        id TEXT PRIMARY KEY, task_id TEXT NOT NULL REFERENCES tasks(id), target TEXT NOT NULL, precision TEXT NOT NULL,
        floor_seconds REAL NOT NULL, contract TEXT NOT NULL, files TEXT NOT NULL, created_at TEXT NOT NULL)""",
    """CREATE TABLE runs (
        id TEXT PRIMARY KEY, contract_id TEXT NOT NULL REFERENCES contracts(id), goal TEXT NOT NULL,
        max_rounds INTEGER NOT NULL, candidates_per_round INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'finished')), round INTEGER NOT NULL, space TEXT, direction TEXT,
        best_candidate_id TEXT REFERENCES candidates(id), created_at TEXT NOT NULL, finished_at TEXT)""",
    """CREATE TABLE rounds (
        run_id TEXT NOT NULL REFERENCES runs(id), round INTEGER NOT NULL, opened_at TEXT NOT NULL,
        PRIMARY KEY (run_id, round))""",
    """CREATE TABLE decisions (
        id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(id), round INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('space', 'direction', 'strategy')), choice TEXT NOT NULL,
        recommended TEXT NOT NULL, decided_by TEXT NOT NULL, reason TEXT NOT NULL, rubric_version TEXT NOT NULL,
        decision TEXT NOT NULL, at TEXT NOT NULL)""",
    """CREATE TABLE candidates (
        id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(id), round INTEGER NOT NULL, name TEXT NOT NULL,
        space TEXT NOT NULL, direction TEXT, parent_id TEXT REFERENCES candidates(id), idea TEXT NOT NULL,
        sources TEXT NOT NULL, created_at TEXT NOT NULL)""",
    """CREATE TABLE evaluations (
        id TEXT PRIMARY KEY, candidate_id TEXT NOT NULL REFERENCES candidates(id),
        status TEXT NOT NULL CHECK (status IN ('invalid_space', 'compile_error', 'crash', 'timeout', 'resource_limit',
            'wrong_output', 'suspect', 'passed', 'not_run')),
        reason TEXT NOT NULL, device TEXT,
        candidate_s REAL, candidate_s_low REAL, candidate_s_high REAL, reference_s REAL,
        speedup REAL, speedup_low REAL, speedup_high REAL, margin REAL,
        evaluation TEXT NOT NULL, log_sha256 TEXT, build_log_sha256 TEXT, at TEXT NOT NULL,
        CHECK ((status = 'passed') = (candidate_s IS NOT NULL)))""",
    """CREATE TABLE profiles (
        id TEXT PRIMARY KEY, candidate_id TEXT NOT NULL REFERENCES candidates(id), bottleneck TEXT NOT NULL,
        profile TEXT NOT NULL, at TEXT NOT NULL)""",
    """CREATE TABLE lessons (
        id TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL, candidate_ids TEXT NOT NULL, direction TEXT,
        space TEXT, at TEXT NOT NULL)""",
    """CREATE TABLE jobs (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done',
            'failed', 'cancelled', 'interrupted')),
        run_id TEXT REFERENCES runs(id), owner TEXT NOT NULL, idempotency_key TEXT UNIQUE, request TEXT NOT NULL,
        message TEXT NOT NULL, progress REAL, result TEXT, error TEXT,
        created_at TEXT NOT NULL, started_at TEXT, ended_at TEXT)""",
    """CREATE TABLE events (
        n INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT REFERENCES runs(id), at TEXT NOT NULL, kind TEXT NOT NULL,
        data TEXT NOT NULL)""",
    "CREATE INDEX decisions_by_run ON decisions(run_id, round)",
    "CREATE INDEX candidates_by_run ON candidates(run_id, round)",
    "CREATE INDEX evaluations_by_candidate ON evaluations(candidate_id)",
    "CREATE INDEX profiles_by_candidate ON profiles(candidate_id)",
    "CREATE INDEX jobs_by_state ON jobs(state)",
    "CREATE INDEX events_by_run ON events(run_id, n)",
    """CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
    """CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
)


@migrations()
def m001_first_schema(db: Any) -> None:
    for statement in _FIRST_SCHEMA:
        db.execute(statement)


@migrations()
def m002_lessons_are_searchable(db: Any) -> None:
    db.table("lessons").enable_fts(["title", "text"], create_triggers=True, tokenize="porter unicode61")


@migrations()
def m003_profiles_have_files(db: Any) -> None:
    for column in ("report_sha256", "listing_sha256"):
        db.execute(f"ALTER TABLE profiles ADD COLUMN {column} TEXT")


@migrations()
def m004_runs_have_switches(db: Any) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN switches TEXT NOT NULL DEFAULT ''")


_KIND_OF_OPERATORS = """UPDATE contracts SET
    operator_kind = coalesce((SELECT json_extract(value, '$.kind') AS kind
        FROM json_each(contract, '$.features.operators') GROUP BY kind HAVING sum(json_extract(value, '$.share')) > 0
        ORDER BY sum(json_extract(value, '$.share')) DESC LIMIT 1), 'other'),
    floor_bound = coalesce(json_extract(contract, '$.floor.bound'), 'memory')"""

_PROOF_OF_LESSONS = """UPDATE lessons SET origin = (SELECT id FROM origin), proof = (
    SELECT coalesce(json_group_array(json_object('candidate_id', c.id, 'evaluation_id', e.id, 'task', t.name,
        'space', c.space, 'direction', c.direction, 'status', e.status, 'reason', e.reason, 'device', e.device,
        'speedup', CASE WHEN e.speedup IS NULL THEN json('null') ELSE
            json_object('median', e.speedup, 'low', e.speedup_low, 'high', e.speedup_high) END)), '[]')
    FROM json_each(lessons.candidate_ids) named JOIN candidates c ON c.id = named.value
    JOIN evaluations e ON e.rowid = (SELECT max(rowid) FROM evaluations
        WHERE candidate_id = c.id AND status != 'not_run' AND at <= lessons.at)
    JOIN runs r ON r.id = c.run_id JOIN contracts k ON k.id = r.contract_id JOIN tasks t ON t.id = k.task_id)"""


@migrations()
def m005_memory(db: Any) -> None:
    db.execute("ALTER TABLE contracts ADD COLUMN operator_kind TEXT NOT NULL DEFAULT 'other'")
    db.execute("ALTER TABLE contracts ADD COLUMN floor_bound TEXT NOT NULL DEFAULT 'memory'")
    db.execute(_KIND_OF_OPERATORS)
    db.execute("CREATE TABLE origin (id TEXT NOT NULL)")
    db.execute("INSERT INTO origin VALUES ('o_' || lower(hex(randomblob(12))))")
    db.execute("""CREATE TABLE rounds_imported (
        origin TEXT NOT NULL, run_id TEXT NOT NULL, round INTEGER NOT NULL, task_id TEXT NOT NULL,
        operator_kind TEXT NOT NULL, bound TEXT NOT NULL, device TEXT NOT NULL, space TEXT NOT NULL, direction TEXT,
        record TEXT NOT NULL, PRIMARY KEY (origin, run_id, round))""")
    db.execute("ALTER TABLE lessons ADD COLUMN origin TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE lessons ADD COLUMN proof TEXT NOT NULL DEFAULT '[]'")
    db.execute(_PROOF_OF_LESSONS)
