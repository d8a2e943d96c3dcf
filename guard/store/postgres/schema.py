"""The tables of the store in PostgreSQL, and the steps from each format to the next."""

FORMAT = 2
"""The format that this guard reads and writes."""

CREATE = (
    "CREATE SCHEMA IF NOT EXISTS guard",
    "CREATE TABLE IF NOT EXISTS guard.format (version integer NOT NULL)",
)

# The row of a workspace is its lock: a change holds it from its first look to its commit, so that the sequence has no gap.
# `line` has the very bytes of the log, `document` those of the view files.
STEPS: dict[int, tuple[str, ...]] = {
    1: (
        """
        CREATE TABLE guard.workspace (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name text NOT NULL UNIQUE,
            head_seq bigint NOT NULL DEFAULT 0,
            head_hash text NOT NULL,
            head_segment bigint NOT NULL DEFAULT 1,
            head_offset bigint NOT NULL DEFAULT 0,
            created timestamptz NOT NULL DEFAULT clock_timestamp()
        )
        """,
        """
        CREATE TABLE guard.event (
            workspace bigint NOT NULL REFERENCES guard.workspace ON DELETE CASCADE,
            seq bigint NOT NULL,
            id text NOT NULL,
            type text NOT NULL,
            line bytea NOT NULL,
            PRIMARY KEY (workspace, seq)
        )
        """,
        "CREATE INDEX event_id ON guard.event (workspace, id)",
        """
        CREATE TABLE guard.view (
            workspace bigint NOT NULL REFERENCES guard.workspace ON DELETE CASCADE,
            path text COLLATE "C" NOT NULL,
            seq bigint NOT NULL,
            document bytea NOT NULL,
            PRIMARY KEY (workspace, path)
        ) WITH (fillfactor = 70)
        """,
        """
        CREATE TABLE guard.lease (
            workspace bigint NOT NULL REFERENCES guard.workspace ON DELETE CASCADE,
            name text NOT NULL,
            until timestamptz NOT NULL,
            PRIMARY KEY (workspace, name)
        )
        """,
    ),
    # One row per agent. `spawned` is the number of the record that began it, and `ended` only an order.
    2: (
        """
        CREATE TABLE guard.agent (
            workspace bigint NOT NULL REFERENCES guard.workspace ON DELETE CASCADE,
            task text COLLATE "C" NOT NULL,
            agent text COLLATE "C" NOT NULL,
            spawned bigint NOT NULL,
            is_active boolean NOT NULL,
            document bytea NOT NULL,
            PRIMARY KEY (workspace, task, agent)
        ) WITH (fillfactor = 70)
        """,
        "CREATE INDEX agent_active ON guard.agent (workspace, spawned) WHERE is_active",
        """
        CREATE TABLE guard.finished (
            workspace bigint NOT NULL REFERENCES guard.workspace ON DELETE CASCADE,
            ended bigint NOT NULL,
            task text COLLATE "C" NOT NULL,
            agent text COLLATE "C" NOT NULL,
            PRIMARY KEY (workspace, ended),
            UNIQUE (workspace, task, agent)
        )
        """,
    ),
}
