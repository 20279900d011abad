from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from guards import ACTIVITIES
from guards._activities import Activity
from tests.server import Server

README = Path(__file__).parent.parent / "README.md"


def test_the_first_example_runs(server: Server) -> None:
    match = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert match
    done = subprocess.run([sys.executable, "-c", match[1]], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("Decision(allowed=True, reason='ok', activity='create_post'")
    assert done.stderr == ""
    assert len(server.received) == 1


def test_the_list_of_activities_and_its_type_agree() -> None:
    assert list(Activity.__args__) == list(ACTIVITIES)  # type: ignore[attr-defined]
