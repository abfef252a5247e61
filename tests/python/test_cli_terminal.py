"""What a person at a terminal sees, on a pseudo-terminal, and what nobody sees in a pipe."""

import io
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_process import TIMEOUT_S, command, environment, here, on_terminal
from rich.console import Console
from rich.live import Live
from rich.progress import TextColumn

from seglake.cli.terminal import progress_display

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")

ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", ["cat", "verify"])
def test_colour_is_for_terminals(name: str, vectors: Path) -> None:
    segment = vectors / "active" / "flip_message.bin"
    seen, _ = on_terminal(name, segment)
    assert COLOUR.search(seen)
    piped = here(name, segment)
    assert ESCAPE not in piped.out + piped.err


@pytest.mark.parametrize("name", ["cat", "verify", "info"])
def test_no_color_is_obeyed(name: str, vectors: Path) -> None:
    segment = vectors / "active" / "flip_message.bin"
    seen, _ = on_terminal(name, segment, env={"NO_COLOR": "1"})
    assert not COLOUR.search(seen)
    seen, _ = on_terminal(name, segment, env={"TERM": "dumb"})
    assert ESCAPE not in seen


@pytest.mark.parametrize("stem", ["flip_message", "torn_in_body_preallocated", "custom_key", "typical"])
def test_colour_says_nothing_that_the_text_does_not(stem: str, vectors: Path) -> None:
    segment = vectors / "active" / f"{stem}.bin"
    seen, _ = on_terminal("verify", segment, columns=300, only="output")
    assert COLOUR.sub("", seen) == here("verify", segment).out


def test_progress_is_on_standard_error_of_a_terminal(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    seen, done = on_terminal("verify", segment, only="error")
    assert segment.name in seen
    assert done.out == here("verify", segment).out


@pytest.mark.parametrize("columns", [32, 40, 80])
def test_the_progress_of_an_ingest_fits_the_terminal(columns: int, vectors: Path, tmp_path: Path) -> None:
    segment = vectors / "active" / "flip_message.bin"
    seen, _ = on_terminal("ingest", segment, tmp_path / "lake", columns=columns, only="error")
    # Colours are within a line; what moves the cursor begins another one.
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", COLOUR.sub("", seen)))
    assert max(len(line) for line in lines) <= columns
    for part in ("finding files", "873 bytes of 873 bytes,", "1 of 1 file,", "9 records,", "1 damaged range"):
        assert any(part in line for line in lines), part
    assert "\u2026" not in seen
    assert "?" not in re.sub(r"\x1b\[\?", "", seen)


def test_nothing_is_on_standard_error_of_a_pipe(vectors: Path) -> None:
    segment = vectors / "active" / "typical.bin"
    for arguments in (["verify", segment], ["info", "--count", segment], ["verify", "-"]):
        assert here(*arguments, stdin=segment.read_bytes()).err == ""


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_records_are_cut_to_the_width_of_the_terminal(columns: int, vectors: Path) -> None:
    lines, _ = on_terminal("cat", vectors / "active" / "typical.bin", columns=columns, env={"NO_COLOR": "1"})
    for line in lines.splitlines():
        # The fields in front of the value take up to 56 cells here, and some of the value always shows.
        assert len(line) <= max(columns, 75)
    whole = here("cat", vectors / "active" / "typical.bin").out
    assert any("…" in line for line in lines.splitlines()) is (columns < max(map(len, whole.splitlines())))


# In one process: starting one for each width takes longer than all the rest.
_EACH_WIDTH = """
import fcntl, struct, sys, termios
from seglake.cli import main
for columns in range(60, 80):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    assert main(["cat", sys.argv[1]]) == 0
    print("end of", columns, flush=True)
"""


def test_a_cut_goes_through_no_escape(vectors: Path) -> None:
    segment = vectors / "active" / "extremes.bin"
    seen, done = on_terminal(segment, script=_EACH_WIDTH, env={"NO_COLOR": "1"})
    assert done.status == 0
    *each_width, rest = re.split(r"end of \d+\n", seen)
    assert (len(each_width), rest) == (20, "")
    for columns, lines in zip(range(60, 80), each_width, strict=True):
        assert not re.search(r"\\x[0-9a-f]?…", lines)
        if columns % 7 == 0:
            assert lines == on_terminal("cat", segment, columns=columns, env={"NO_COLOR": "1"})[0]


def test_standard_input_that_is_a_terminal_is_refused() -> None:
    ours, theirs = os.openpty()
    done = subprocess.run(
        command("cat", "-"), stdin=theirs, capture_output=True, env=environment(), timeout=TIMEOUT_S, check=False
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"standard input is a terminal" in done.stderr


# The signal comes to a thread that waits for nothing, so it interrupts no system call of the main one: as when it comes
# just before such a call, which no test could time.
_ELSEWHERE = """
import signal, sys, threading
from seglake.cli import main
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["cat", "verify", "info"])
@pytest.mark.parametrize("seen_by", ["the thread that reads", "another thread"])
def test_ctrl_c_ends_it_with_one_line(name: str, seen_by: str, vectors: Path) -> None:
    """The process waits for more of a pipe; that it does is known from the progress that it shows."""
    program = ["-m", "seglake"] if seen_by == "the thread that reads" else ["-c", _ELSEWHERE]
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, *program, name, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment({"TERM": "xterm-256color"}),
    )
    os.close(theirs)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write((vectors / "active" / "typical.bin").read_bytes())
        process.stdin.flush()
        seen = b""
        while b"copying standard input" not in seen:
            seen += _from_terminal(ours)
        process.send_signal(signal.SIGINT)
        while b"interrupted\r\n" not in seen:
            seen += _from_terminal(ours)
        assert process.stdout.read() == b""
    assert process.wait(TIMEOUT_S) == 130
    os.close(ours)
    after = seen.decode().rpartition("seglake: ")[2]
    assert after.startswith("interrupted\r\n")
    assert "Traceback" not in seen.decode()


@pytest.mark.parametrize("step", ["show_cursor", "push_render_hook", "_enable_redirect_io"])
@pytest.mark.parametrize("when", ["before", "behind"])
def test_ctrl_c_while_progress_is_set_up_is_only_that(step: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Live if hasattr(Live, step) else Console
    done = getattr(owner, step)
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")

    def interrupted(*arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(owner, step, done)
        if when == "behind":
            done(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, step, interrupted)
    with pytest.raises(KeyboardInterrupt), progress_display(screen, TextColumn("copying")):
        pytest.fail("the block is not entered")
    shown = screen.getvalue()
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")


def _from_terminal(descriptor: int) -> bytes:
    readable, _, _ = select.select([descriptor], [], [], TIMEOUT_S)
    assert readable, "nothing more is shown"
    return os.read(descriptor, 4096)


def test_a_pipe_that_does_not_block_is_read_to_its_end(vectors: Path) -> None:
    """As other programs leave one behind: where nothing is there yet, that is not the end."""
    content = (vectors / "active" / "typical.bin").read_bytes()
    theirs, ours = os.pipe()
    os.set_blocking(theirs, False)
    with subprocess.Popen(
        command("verify", "-"), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        os.close(theirs)
        for part in (content[:100], content[100:]):
            time.sleep(0.5)
            os.write(ours, part)
        os.close(ours)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (0, b"")
    assert out.decode() == here("verify", "-", stdin=content).out
