"""What all commands share."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from streamsieve import __version__
from streamsieve.cli import listing
from streamsieve.cli.main import main


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"streamsieve {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["lst"]])
def test_a_command_is_needed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(("package", "extra"), [("uvicorn", "serve"), ("openai", "openai")])
def test_a_missing_extra_says_the_one_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], package: str, extra: str
) -> None:
    def run(options: argparse.Namespace) -> int:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(listing, "run", run)
    assert main(["list"]) == 1
    assert f"pip install 'streamsieve[{extra}]'" in capsys.readouterr().err


def test_another_missing_module_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(options: argparse.Namespace) -> int:
        raise ModuleNotFoundError("No module named 'nothing'", name="nothing")

    monkeypatch.setattr(listing, "run", run)
    with pytest.raises(ModuleNotFoundError):
        main(["list"])


@pytest.mark.parametrize("command", [["parse"], ["list"], ["check", "--help"], ["serve", "--help"], ["demo", "--help"]])
def test_a_command_imports_no_server_before_it_needs_one(command: list[str]) -> None:
    program = (
        "import sys\nfrom streamsieve.cli.main import main\n"
        f"try:\n    main({command!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'uvicorn', 'starlette', 'httpx2', 'openai', 'pydantic', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], input=b"", check=True, stdout=subprocess.DEVNULL)
