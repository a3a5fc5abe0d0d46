"""The runner of the docs: what it finds in a page and what it makes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.snippets import blocks, script

WITH_PYTHON = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
"""A system's own python may be named python3 only."""

PAGE = """\
# Page

```bash
x=1
echo $x at localhost:9092
```

<!-- before: echo first -->
<!-- before: echo second -->
```python
print("three")
```

<!-- not run: it never ends -->
```bash
sleep 1000
```

<!-- file: config.ini -->
```ini
a = 1
```

```
just text
```

<!-- runs on -->
```bash
echo on $x; sleep 1000
```

```bash
cat config.ini; echo "x is $x"
```
"""


def test_blocks_run_in_one_shell_from_top_to_end(tmp_path: Path) -> None:
    """Variables live on, files are saved, what runs on is stopped, what is not run is not."""
    done = subprocess.run(
        ["bash", "-c", script("page.md", PAGE, {"localhost:9092": "here:1"})],
        cwd=tmp_path,
        env=WITH_PYTHON,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "1 at here:1",
        "first",
        "second",
        "three",
        "a = 1",
        "x is 1",
    ]
    assert "==== page.md:3\n" in done.stderr


def test_a_failing_block_is_named_and_ends_the_page(tmp_path: Path) -> None:
    """The exit code is that of the block; nothing after it runs."""
    text = "```bash\nexit_code() { return 3; }; exit_code\n```\n```bash\necho no\n```\n"
    done = subprocess.run(
        ["bash", "-c", script("page.md", text, {})], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("==== page.md:1\n")


def test_an_unknown_directive_is_an_error() -> None:
    """A misspelt directive would run a block that must not run."""
    with pytest.raises(AssertionError, match="not runn"):
        list(blocks("<!-- not runn: because -->\n```bash\nx\n```\n"))
