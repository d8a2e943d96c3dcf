"""A PostgreSQL server of the tests' own, by a socket in a folder; initdb refuses root, so it runs as the user postgres."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"
PASSWORD = "s3kr/t pass:w%rd"
_START = (
    "-c listen_addresses='{}' -c port={} -c unix_socket_directories={} -c max_connections=200{}"
)


def find_programs() -> Path | None:
    """The folder with initdb and pg_ctl: on PATH, or where Debian has them."""
    found = shutil.which("pg_ctl")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if _has_all(place)), None)


def _has_all(place: Path) -> bool:
    return all((place / name).exists() for name in ("initdb", "pg_ctl", "psql"))


class PostgresServer:
    """One that listens on the network wants the password there."""

    def __init__(
        self,
        folder: Path,
        programs: Path,
        listen: str = "",
        port: int = 5432,
        *,
        durable: bool = False,
    ) -> None:
        self.folder = folder
        self.port = port
        self._listen = listen
        self._durable = durable
        self._programs = programs
        self._data = folder / "data"

    def make(self) -> None:
        self._run("initdb", "-A", "trust", "-U", "guard", "--no-sync", "-D", str(self._data))
        if self._listen:
            with open(self._data / "pg_hba.conf", "a", encoding="ascii") as file:
                file.write("host all all 10.0.0.0/8 scram-sha-256\n")
        self.start()
        if self._listen:
            self.query("postgres", f"ALTER ROLE guard PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        log, durable = str(self.folder / "log"), "" if self._durable else " -c fsync=off"
        options = _START.format(self._listen, self.port, self.folder, durable)
        self._run(
            "pg_ctl", "-w", "-t", "120", "-D", str(self._data), "-l", log, "-o", options, "start"
        )

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-w", "-t", "120", "-D", str(self._data), "-m", mode, "stop")

    def new_database(self, name: str) -> str:
        """Make a database; its address."""
        self.query("postgres", f'CREATE DATABASE "{name}" TEMPLATE template0')
        return f"postgresql://guard@/{name}?host={self.folder}"

    def query(self, database: str, text: str) -> str:
        words = [
            "psql",
            "-X",
            "-q",
            "-A",
            "-t",
            "-U",
            "guard",
            "-h",
            str(self.folder),
            "-p",
            f"{self.port}",
        ]
        return self._run(*words, "-d", database, "-c", text)

    def _run(self, program: str, *words: str) -> str:
        argv = [str(self._programs / program), *words]
        if os.geteuid() == 0:
            argv = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *argv]
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@contextmanager
def postgres_server(
    programs: Path, listen: str = "", port: int = 5432, *, durable: bool = False
) -> Iterator[PostgresServer]:
    """Run a server; its folder has a short path, because that of a socket may have 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="guard-pg-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
    server = PostgresServer(folder, programs, listen, port, durable=durable)
    try:
        server.make()
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
