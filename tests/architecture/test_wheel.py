"""What an installed wheel brings, and that it works without any extra."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BLOCK = """
import sys

EXTRAS = {"a2a", "httpx", "opentelemetry", "starlette", "uvicorn", "psycopg", "rfc3161_client", "securesystemslib"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}: no extra is installed", name=name)
        return None

sys.meta_path.insert(0, Refuse())
"""


def without_extras(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that can import nothing that an extra brings."""
    program = textwrap.dedent(BLOCK) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(ROOT)],
        capture_output=True,
        check=True,
    )
    return next(place.glob("*.whl"))


def test_the_wheel_installs_two_packages_and_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "a2a_ledger",
        "a2a_ledger_projections",
        "a2a_ledger-0.1.0.dist-info",
    }
    modules = {name for name in names if name.endswith(".py")}
    in_tree = {
        path.relative_to(ROOT / root).as_posix()
        for root in ("ledger", "projections")
        for path in (ROOT / root).rglob("*.py")
    }
    assert modules == in_tree
    for marker in (
        "a2a_ledger/profiles/default.toml",
        "a2a_ledger/py.typed",
        "a2a_ledger_projections/py.typed",
        "a2a_ledger-0.1.0.dist-info/licenses/LICENSE",
    ):
        assert marker in names


def test_the_wheel_names_one_console_script_and_the_followers(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.read("a2a_ledger-0.1.0.dist-info/entry_points.txt").decode()
    assert "[console_scripts]\na2a-ledger = a2a_ledger.cli:main\n" in entries
    assert entries.count("a2a_ledger_projections.") == 4


def test_the_package_imports_without_extras() -> None:
    done = without_extras("import a2a_ledger, a2a_ledger_projections; print(a2a_ledger.__name__)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a2a_ledger\n", "")


def test_the_command_line_shows_its_help_without_extras() -> None:
    done = without_extras("sys.argv = ['a2a-ledger', '--help']\nfrom a2a_ledger.cli import main\nmain()")
    assert done.returncode == 0, done.stderr
    for verb in ("demo", "init", "tasks", "show", "verify", "audit"):
        assert verb in done.stdout


def test_the_guard_says_which_extra_it_needs() -> None:
    done = without_extras("""
        from a2a_ledger.errors import UsageError
        try:
            from a2a_ledger import guard
            guard(None)
        except (UsageError, ImportError) as error:
            print(error)
    """)
    assert done.returncode == 0, done.stderr
    assert "a2a-ledger[a2a]" in done.stdout


def test_importing_the_package_is_light() -> None:
    done = without_extras("""
        import a2a_ledger
        heavy = {"asyncio", "click", "cryptography", "eventsourcing", "rich", "sqlite3"}
        print(sorted(heavy & set(sys.modules)))
    """)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_importing_the_service_needs_neither_the_verifier_nor_what_reads_the_wire() -> None:
    done = without_extras(
        "from a2a_ledger import ContractLedger\n"
        "tops = {'.'.join(name.split('.')[:2]) for name in sys.modules if name.startswith('a2a_ledger.')}\n"
        "print('a2a_ledger.store' in tops)\n"
        "print(sorted(tops & {'a2a_ledger.' + name for name in ('audit', 'capture', 'cli', 'divergence', 'export',"
        " 'reconcile', 'signature', 'verify')}))"
    )
    assert done.stdout == "True\n[]\n", done.stdout + done.stderr
