"""Spark's own master and workers on loopback, from the jars of the pyspark package; workers die as machines do, at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pyspark

from gateway.tests.ports import free_port
from gateway.tests.process import wait_for

HOME = Path(pyspark.__file__).parent
#: Of applications on the cluster.
PROPERTIES = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


class Cluster:
    """A master and as many workers as are added. ``directory`` takes their logs and working directories."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        lines = [f"{name} {value}\n" for name, value in PROPERTIES.items()]
        (directory / "spark-defaults.conf").write_text("".join(lines))
        self._processes: list[subprocess.Popen[bytes]] = []
        #: Those that are alive, oldest first.
        self.workers: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._run("Master", "--port", str(port))
        log = self._log("Master-0")
        wait_for(lambda: "elected leader" in log.read_text())

    @property
    def configuration(self) -> str:
        """SPARK_CONF_DIR of gateways on this cluster."""
        return str(self._directory)

    def _run(self, role: str, *arguments: str) -> subprocess.Popen[bytes]:
        # No PYTHONPATH: what workers have to import is the gateway's to say.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false",
            "SPARK_WORKER_DIR": str(self._directory / "work"),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
        }
        name = f"{role}-{len(self._processes)}"
        command = [HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{role.lower()}.{role}"]
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--webui-port", "0", *arguments],
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

    def add_worker(self) -> None:
        """One core, so that it takes one executor of one application. The master knows it some seconds later."""
        self.workers.append(self._run("Worker", "--cores", "1", "--memory", "1g", self.url))

    def lose_worker(self) -> None:
        """SIGKILL to the oldest worker and all that it has started, as a machine loses its power. The others have executors."""
        wait_for(lambda: all(len(session_of(worker.pid)) > 1 for worker in self.workers))
        worker = self.workers.pop(0)
        _kill_session(worker.pid)
        worker.wait(30)

    def close(self) -> None:
        """Kill what still runs; returns when nothing is left."""
        for process in self._processes:
            _kill_session(process.pid)
            process.wait(30)
        wait_for(lambda: not any(session_of(process.pid) for process in self._processes), 30)


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


def _kill_session(leader: int) -> None:
    # What is forked meanwhile is in the next list.
    while pids := session_of(leader):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
