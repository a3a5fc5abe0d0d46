"""`kafka08 report` on the session's cluster."""

from __future__ import annotations

from pathlib import Path

from kafka08.pages import read_report
from tests.cli.conftest import Commands, Inspector


def test_the_second_report_compares_with_the_first(
    kafka08: Commands, inspect: Inspector, tmp_path: Path
) -> None:
    """The second report has rates from the messages since the first, and a third one continues the
    chart."""
    topic = inspect.create_topic("reported")
    page = tmp_path / "report.html"
    kafka08("report", "--output", page, "--seconds", 0)
    kafka08("produce", topic, stdin=b"a\nb\nc\n")
    done = kafka08("report", "--output", page, "--seconds", 0)
    assert f"Wrote {page}: " in done.out.decode()
    kafka08("report", "--output", page, "--seconds", 0)
    kept = read_report(page)
    assert kept is not None
    [with_messages, without] = [rate for _, rate in kept.trends.incoming]
    assert with_messages > 0
    assert 0 == without
    assert [page] == [path for path in tmp_path.iterdir() if "report.html" in path.name]


def test_a_redirection_gets_the_page(kafka08: Commands, tmp_path: Path) -> None:
    """`report > x.html`, as whoever types it expects. (It had one line.)"""
    kafka08.shell(f"cd {tmp_path} && kafka08 report --seconds 0 > x.html")
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert ["x.html"] == [path.name for path in tmp_path.iterdir() if "html" in path.name]


def test_a_directory_that_is_not_there_is_named_before_the_cluster_is_read(
    kafka08: Commands, tmp_path: Path
) -> None:
    """As misuse, and not as the name of a partial file."""
    output = tmp_path / "none" / "report.html"
    done = kafka08("report", "--output", output, code=2)
    assert f"no directory {output.parent}." in done.err


def test_a_report_goes_to_stdout(kafka08: Commands) -> None:
    """For `-`, without another line there and without a file of that name."""
    done = kafka08("report", "--output", "-", "--seconds", 0)
    assert done.out.startswith(b"<!doctype html>")
    assert done.out.rstrip().endswith(b"</html>")
    assert done.err.splitlines()[-1].startswith("Wrote the report: ")
    assert not (Path.cwd() / "-").exists()
