"""What is taken for a Spark master."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from gateway.tests.ports import free_port
from gateway.tests.process import COMMAND
from skerry.spark.master import check_master
from skerry.spark.session import own_address


@pytest.mark.parametrize(
    "master",
    [
        "local", "local[2]", "local[*]", "local[*,3]", "local[ 4 , 2 ]", "local-cluster[2,1,1024]", "yarn",
        "spark://host:7077", "spark://10.0.0.1:7077,[fe80::1]:7078", "k8s://https://10.0.0.1:6443", "k8s://10.0.0.1:6443",
        "k8s://https://kubernetes.example",
    ],
)  # fmt: skip
def test_what_spark_takes_is_taken(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master",
    [
        "bogus", "", "local[]", "local[0]", "local[two]", "local[2", "local[2,]", "Local", " local", "yarn-client",
        "spark://host", "spark://:7077", "spark://host:70777", "spark://host:0", "spark://host:7077,", "spark://a b:7077",
        "spark://host:7077/", "host:7077", "mesos://host:5050", "k8s://", "local\n",
    ],
)  # fmt: skip
def test_what_it_never_would_is_refused(master: str) -> None:
    with pytest.raises(ValueError, match="expected local") as refused:
        check_master(master)
    assert str(refused.value).startswith(f"--master {master}: ")


def test_a_gateway_says_so_and_ends(tmp_path: Path) -> None:
    link = f"socket://127.0.0.1:{free_port()}"
    done = subprocess.run(
        [COMMAND, "gateway", "--link", link, "--data", str(tmp_path / "data"), "--master", "bogus"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("skerry: --master bogus: expected local[N]")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("master", "address"),
    [
        ("local[2]", "127.0.0.1"),
        ("local-cluster[2,1,1024]", "127.0.0.1"),
        ("yarn", None),
        ("spark://[::1]:7077,127.0.0.1:7077", "::1"),
        ("k8s://[::1]:6443", "::1"),
        ("k8s://https://[::1]", "::1"),
    ],
)
def test_workers_elsewhere_are_given_the_address_towards_them(master: str, address: str | None) -> None:
    """IPv6's loopback is not what a gateway takes whose workers are its own threads."""
    if address == "::1" and not has_ipv6():
        pytest.skip("no IPv6 on loopback")
    assert own_address(master) == address


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect(("::1", 7077))
    except OSError:
        return False
    return True
