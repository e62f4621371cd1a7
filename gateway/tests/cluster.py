"""Spark's own master and workers on loopback, from the jars of the pyspark package; workers die as machines do, at once."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pyspark

from gateway.tests.java import ARCHIVE, BRIEF
from gateway.tests.ports import free_port
from gateway.tests.process import wait_for

HOME = Path(pyspark.__file__).parent
#: How old what a worker knows of a file may be, in s, where it sees a directory as over a network: its length, and that it is not there.
STALE_S = 1
#: Of each Java: a driver's archive has most of a master's, a worker's and an executor's classes, too.
JAVA = f"{BRIEF} -XX:SharedArchiveFile={ARCHIVE}"
#: Of applications on the cluster.
PROPERTIES = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": JAVA}
#: Of those whose tasks are given to another worker, too, where they are late: docs/spark.md, "A slow worker".
SPECULATION = {"spark.speculation": "true", "spark.speculation.task.duration.threshold": "5s"}


class Cluster:
    """A master and as many workers as are added. ``directory`` takes their logs and working directories."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        self.configure()
        self._processes: list[subprocess.Popen[bytes]] = []
        #: Those that are alive, oldest first.
        self.workers: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._run("Master", "--port", str(port))
        log = self._log("Master-0")
        try:
            wait_for(lambda: "elected leader" in log.read_text())
        except BaseException:
            # Nobody else knows of it yet.
            self.close()
            raise

    @property
    def configuration(self) -> str:
        """SPARK_CONF_DIR of gateways on this cluster."""
        return str(self._directory)

    def configure(self, more: Mapping[str, str] = MappingProxyType({})) -> None:
        """Properties of applications that begin from now on."""
        lines = [f"{name} {value}\n" for name, value in {**PROPERTIES, **more}.items()]
        (self._directory / "spark-defaults.conf").write_text("".join(lines))

    def _run(self, role: str, *arguments: str, within: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        # No PYTHONPATH: what workers have to import is the gateway's to say. Nor its configuration, whose directory is a class path that
        # the archive does not know.
        left_out = ("PYTHONPATH", "SPARK_CONF_DIR")
        # Each has an address of its own on loopback: of one machine's executors no second one is given a task that is late.
        host = f"127.0.0.{1 + len(self._processes)}"
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        environment |= {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": f"{JAVA} -Dspark.master.rest.enabled=false",
            "SPARK_WORKER_DIR": str(self._directory / "work"),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
        }
        name = f"{role}-{len(self._processes)}"
        command = [HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{role.lower()}.{role}"]
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [*within, *command, "--host", host, "--webui-port", "0", *arguments],
                env=environment,
                stdout=log,
                stderr=log,
                # A session of its own: what it starts can be told from everything else.
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def add_worker(self, stale: Path | None = None) -> None:
        """One core, so that it takes one executor of one application. The master knows it some seconds later. ``stale``: a directory of
        which it knows what another machine would over NFS, which is some time old; where :func:`can_be_stale` says so."""
        within = () if stale is None else _stale(stale)
        self.workers.append(self._run("Worker", "--cores", "1", "--memory", "1g", self.url, within=within))

    def started(self) -> list[list[int]]:
        """What each worker has started for applications, by process ids."""
        return [
            [pid for pid in session_of(worker.pid) if pid != worker.pid and _name(pid) != "bindfs"]
            for worker in self.workers
        ]

    @contextlib.contextmanager
    def slow_worker(self, chance: random.Random) -> Iterator[None]:
        """All that one of them has started stands still meanwhile, as on a machine that swaps."""
        wait_for(lambda: all(self.started()))
        pids = chance.choice(self.started())
        _send(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _send(pids, signal.SIGCONT)

    def lose_worker(self) -> None:
        """SIGKILL to the oldest worker and all that it has started, as a machine loses its power. The others have executors."""
        wait_for(lambda: all(self.started()))
        worker = self.workers.pop(0)
        _kill_session(worker.pid)
        worker.wait(30)

    def close(self) -> None:
        """Kill what still runs; returns when nothing is left."""
        for process in self._processes:
            _kill_session(process.pid)
            process.wait(30)
        wait_for(lambda: not any(session_of(process.pid) for process in self._processes), 30)


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def can_be_stale() -> bool:
    """Whether this machine lets a process have its own view of a directory."""
    return os.geteuid() == 0 and os.access("/dev/fuse", os.W_OK) and shutil.which("bindfs") is not None


def _stale(directory: Path) -> tuple[str, ...]:
    """What runs a command that sees a directory through the kernel's cache, as clients of NFS do."""
    options = ",".join(f"{name}_timeout={STALE_S}" for name in ("attr", "entry", "negative"))
    script = (
        "mount --make-rprivate / || exit; bindfs -f -o nonempty,$2 $1 $1 & "
        'until mountpoint -q $1; do kill -0 $! || exit; sleep 0.05; done; shift 2; exec "$@"'
    )
    return "unshare", "--mount", "sh", "-c", script, "sh", str(directory), options


def session_of(leader: int) -> list[int]:
    """Processes of the session that this one began, itself among them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        # Some have ended meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _kill_session(leader: int) -> None:
    # What is forked meanwhile is in the next list.
    while pids := session_of(leader):
        _send(pids, signal.SIGKILL)
        time.sleep(0.01)
