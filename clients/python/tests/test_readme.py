from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import Server

HERE = Path(__file__).parent  # has an activities.py, as the app of the example
README = HERE.parent / "README.md"


def test_the_first_example_runs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    match = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert match
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *sys.path]))
    done = subprocess.run([sys.executable, "-c", match[1]], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("Decision(allowed=True, reason='ok', activity='create_post'")
    assert done.stderr == ""
    assert len(server.received) == 1
