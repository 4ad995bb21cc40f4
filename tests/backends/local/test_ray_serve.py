"""Replicas of a real Ray Serve on this machine: they stream, fail alone, are replaced, and end what they began."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest

from tests.backends.local.waiting import wait_until

CLUSTER = Path(__file__).with_name("ray_cluster.py")
NEEDED = ["ray[serve]==2.60.0"]
KEY = "sesame"
CALL = {"port": "Bodø"}
PATIENCE = 60.0
"""Seconds in which Ray has to have done something."""


@dataclass
class Cluster:
    """Where it is, what it reads, and what it has started."""

    url: str
    folder: Path
    commands: IO[str]
    answers: IO[str]
    http: httpx2.Client
    opened: int = 0

    def tell(self, command: str) -> None:
        print(command, file=self.commands, flush=True)

    def hear(self, word: str) -> None:
        """Wait until it says so; Ray says other things on the same stream."""
        assert any(line == word + "\n" for line in self.answers), f"it ended before it was {word}"

    def request(self, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """The name of the file that a new request waits for, and its body."""
        self.opened += 1
        name = f"release-{self.opened}"
        tool = {"type": "function", "function": {"name": "get_tide", "parameters": {"type": "object"}}}
        messages = [{"role": "user", "content": name}]
        return name, {"model": "paced", "stream": stream, "messages": messages, "tools": [tool]}

    def open(self, stack: ExitStack, prefix: str = "") -> Reply:
        """A reply that has begun: its process is known and half of its call is there."""
        name, body = self.request(stream=True)
        url = f"{self.url}{prefix}/v1/chat/completions"
        answer = stack.enter_context(self.http.stream("POST", url, json=body))
        assert answer.status_code == 200, answer.read()
        reply = Reply(answer.iter_lines(), self.folder / name)
        while not reply.arguments.endswith("Bo"):
            assert reply.read_one(), reply
        return reply


@dataclass
class Reply:
    """What has come of a streamed reply."""

    lines: Iterator[str]
    release: Path = Path(os.devnull)
    reasoning: str = ""
    arguments: str = ""
    finish_reason: str | None = None
    errors: list[Any] = field(default_factory=list)
    done: bool = False

    @property
    def process(self) -> int:
        return int(self.reasoning)

    def read_one(self) -> bool:
        """Read an event; False at the end of the stream."""
        line = next((line for line in self.lines if line.startswith("data: ")), None)
        if line is None or line == "data: [DONE]":
            self.done = line is not None
            return False
        event = json.loads(line.removeprefix("data: "))
        if "error" in event:
            self.errors.append(event["error"])
        for choice in event.get("choices", ()):
            self.reasoning += choice["delta"].get("reasoning") or ""
            for call in choice["delta"].get("tool_calls", ()):
                self.arguments += call["function"].get("arguments") or ""
            self.finish_reason = choice["finish_reason"] or self.finish_reason
        return True

    def read_all(self) -> None:
        while self.read_one():
            pass

    def finish(self) -> None:
        """Have the rest written, and read it."""
        self.release.touch()
        self.read_all()

    def assert_whole(self) -> None:
        assert (json.loads(self.arguments), self.finish_reason, self.done) == (CALL, "tool_calls", True)
        assert not self.errors


@pytest.fixture(scope="module")
def python(environment: Any) -> Path:
    """The interpreter of an environment with Ray, which has all else from this one."""
    found: Path = environment("ray", NEEDED)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([found, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    Path(site, "this_environment.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return found


@pytest.fixture(scope="module")
def cluster(python: Path, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two replicas at `/`, which take one reply at a time each, one such at `/brief`, and a model at `/model`."""
    folder = tmp_path_factory.mktemp("said")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="ray-") as home:  # a short path: there are sockets in it
        told = {
            "RAY_TMPDIR": home,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        process = subprocess.Popen(
            [python, CLUSTER, str(port), folder, tiny_folder],
            env={**os.environ, **told},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        headers = {"authorization": f"Bearer {KEY}"}
        with process, httpx2.Client(headers=headers, timeout=PATIENCE, trust_env=False) as http:
            found = Cluster(f"http://127.0.0.1:{port}", folder, process.stdin, process.stdout, http)
            found.hear("ready")
            yield found
            process.stdin.close()
            process.wait(PATIENCE)
        assert process.returncode == 0


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_key_is_asked_for(cluster: Cluster) -> None:
    models = cluster.url + "/v1/models"
    assert httpx2.get(models, trust_env=False).status_code == 401
    assert cluster.http.get(models).json()["data"][0]["id"] == "paced"


def both(cluster: Cluster, stack: ExitStack) -> tuple[Reply, Reply]:
    """A reply of each replica, both begun."""
    one, other = cluster.open(stack), cluster.open(stack)
    assert one.process != other.process
    return one, other


def test_both_replicas_stream_when_they_have_loaded(cluster: Cluster) -> None:
    with ExitStack() as stack:
        for reply in both(cluster, stack):
            assert (cluster.folder / f"loaded-{reply.process}").exists()
            reply.finish()
            reply.assert_whole()


def test_a_killed_replica_takes_its_own_reply_with_it(cluster: Cluster) -> None:
    with ExitStack() as stack:
        broken, whole = both(cluster, stack)
        os.kill(broken.process, signal.SIGKILL)
        with pytest.raises(httpx2.RemoteProtocolError):
            broken.finish()
        assert not broken.done
        assert broken.finish_reason is None
        whole.finish()
        whole.assert_whole()
    with ExitStack() as stack:
        after = both(cluster, stack)
        assert broken.process not in [reply.process for reply in after]
        for reply in after:
            reply.finish()
            reply.assert_whole()


def test_an_answer_that_has_not_begun_is_an_error(cluster: Cluster) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(1) as asking:
        kept, killed = both(cluster, stack)
        killed.finish()
        name, body = cluster.request(stream=False)
        answer = asking.submit(cluster.http.post, cluster.url + "/v1/chat/completions", json=body)
        wait_until(lambda: (cluster.folder / f"{name}-begun").exists(), PATIENCE)
        os.kill(killed.process, signal.SIGKILL)
        assert answer.result().status_code == 500
        kept.finish()
        kept.assert_whole()


def test_a_replica_that_is_not_well_is_replaced(cluster: Cluster) -> None:
    with ExitStack() as stack:
        sick, well = both(cluster, stack)
        for reply in (sick, well):
            reply.finish()
    (cluster.folder / f"dead-{sick.process}").touch()
    wait_until(lambda: is_gone(sick.process), PATIENCE)
    with ExitStack() as stack:
        assert sick.process not in [reply.process for reply in both(cluster, stack)]


def test_a_replica_that_is_stopped_ends_what_it_began(cluster: Cluster) -> None:
    with ExitStack() as stack:
        reply = cluster.open(stack, "/brief")
        cluster.tell("delete")
        time.sleep(1.0)
        assert not (cluster.folder / f"closed-{reply.process}").exists()
        reply.finish()
        reply.assert_whole()
        cluster.hear("deleted")
        assert (cluster.folder / f"closed-{reply.process}").exists()


def test_a_model_is_held_to_the_schema_of_a_call(cluster: Cluster) -> None:
    days = {"type": "object", "properties": {"days": {"enum": [1, 2]}}, "required": ["days"]}
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Tides?"}],
        "tools": [{"type": "function", "function": {"name": "get_tide", "parameters": days, "strict": True}}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_tokens": 200,
        "stream": True,
    }
    with cluster.http.stream("POST", cluster.url + "/model/v1/chat/completions", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        reply = Reply(answer.iter_lines())
        reply.read_all()
    assert json.loads(reply.arguments)["days"] in (1, 2)
    assert (reply.finish_reason, reply.done, reply.errors) == ("tool_calls", True, [])
