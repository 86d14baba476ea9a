"""Programs that read what is hidden from them, or write what would stay."""

from pathlib import Path

from hostile import Check, Hostile, table

from engine.evaluation.zygote import paths_without, readable_paths

DENIED = "Error: [Errno"
FORBIDDEN = "[Errno 1]"


def hidden(name: str, attempt: str, words: str = DENIED) -> Hostile:
    return Hostile(name=name, attempt=attempt, words=words, wall="files")


@table(
    hidden("the run's log", "print(open(SECRET).read())"),
    hidden("a run's database", "import sqlite3\nsqlite3.connect(SECRET)", "unable to open"),
    hidden("the run's log as an array", "np.memmap(SECRET)"),
    hidden("the run's folder", "print(os.listdir(FOLDER))"),
    hidden(
        "the run's log through /proc",
        "fd = os.open(SECRET, os.O_PATH)\nopen(f'/proc/self/fd/{fd}').read()",
    ),
    hidden("the hidden signals", "import evaluators.signal.cases"),
    hidden("the scorer", "import evaluators.signal.evaluator"),
    hidden("the scorer's text", "print(open(EVALUATORS + '/signal/evaluator.py').read())"),
    hidden(
        "the scorer's text by its loader",
        """
        import importlib.util
        path = EVALUATORS + '/signal/evaluator.py'
        spec = importlib.util.spec_from_file_location('scorer', path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        """,
    ),
    hidden("its own problem's scorer", "import runpy\nrunpy.run_path(PROBLEM + '/evaluator.py')"),
    hidden("the environment of the engine", "open(f'/proc/{TEST}/environ').read()"),
    hidden("the memory of the engine", "open(f'/proc/{TEST}/mem', 'rb').read(1)"),
    hidden("the memory of the zygote", "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    hidden("the files of the engine", "os.listdir(f'/proc/{TEST}/fd')"),
    hidden("the program that the engine runs", "os.readlink(f'/proc/{TEST}/exe')"),
    hidden("its own memory, written", "open('/proc/self/mem', 'r+b').write(b'x')"),
    hidden("its own environment", "open('/proc/self/environ').read()"),
    hidden("the users", "open('/etc/passwd').read()"),
    hidden("the processes", "os.listdir('/proc')"),
)
def test_what_is_hidden_stays_hidden(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


@table(
    hidden("a file where it runs", "open(MARK, 'w').write('x')"),
    hidden("a file in /tmp", "open('/tmp/' + MARK, 'w').write('x')"),
    hidden("a file in /dev/shm", "open('/dev/shm/' + MARK, 'w').write('x')"),
    hidden("a file at home", "open(os.path.expanduser('~/' + MARK), 'w').write('x')"),
    hidden("a file without a name", "os.open(FOLDER, os.O_TMPFILE | os.O_RDWR)"),
    hidden("a file of a library", "open(np.__file__, 'a').write('x')"),
    hidden("sitecustomize", "open(os.path.dirname(os.__file__) + '/sitecustomize.py', 'x')"),
    hidden("a temporary file", "import tempfile\ntempfile.TemporaryFile()", "Error"),
    hidden("an array", "np.save(FOLDER + '/array.npy', values)"),
    hidden("the run's log, at its end", "open(SECRET, 'a').write('x')"),
    hidden("the run's log, cut", "os.truncate(SECRET, 0)", FORBIDDEN),
    hidden("the run's log, removed", "os.unlink(SECRET)", FORBIDDEN),
    hidden("the run's log, renamed", "os.rename(SECRET, SECRET + '2')", FORBIDDEN),
    hidden(
        "the run's log, replaced", "os.replace(__import__('numpy').__file__, SECRET)", FORBIDDEN
    ),
    hidden("the run's log, for everybody", "os.chmod(SECRET, 0o777)", FORBIDDEN),
    hidden("the run's log, given away", "os.chown(SECRET, 1, 1)", FORBIDDEN),
    hidden("the run's log, with a note", "os.setxattr(SECRET, 'user.x', b'x')", FORBIDDEN),
    hidden("the run's log, as old", "os.utime(SECRET, (0, 0))", FORBIDDEN),
    hidden("a folder", "os.mkdir(FOLDER + '/new')", FORBIDDEN),
    hidden("a symbolic link", "os.symlink(SECRET, FOLDER + '/link')", FORBIDDEN),
    hidden("a hard link", "os.link(SECRET, FOLDER + '/link')", FORBIDDEN),
    hidden("a named pipe", "os.mkfifo(FOLDER + '/pipe')", FORBIDDEN),
    hidden("a device", "os.mknod(FOLDER + '/device', 0o20666, os.makedev(1, 3))", FORBIDDEN),
    hidden("another working folder", "os.chdir('/')", FORBIDDEN),
    hidden("another root", "os.chroot(FOLDER)", FORBIDDEN),
    hidden("its own name", "open('/proc/self/comm', 'w').write('zygote')"),
    hidden("who is killed first", "open('/proc/self/oom_score_adj', 'w').write('-1000')"),
    hidden("what a dump holds", "open('/proc/self/coredump_filter', 'w').write('0x7f')"),
    hidden("its users", "open('/proc/self/uid_map', 'w').write('0 0 1')"),
    *(
        hidden(
            f"what it holds, by another name: {n}",
            f"open('/proc/self/fd/{n}', 'r+b', 0).write(b'x')",
        )
        for n in (4, 6)
    ),
    hidden("the input of all", "open(f'/proc/{os.getppid()}/fd/3', 'r+b').write(b'x')"),
    hidden("the disk's first block", "os.open('/dev/vda', os.O_RDWR)"),
    hidden("the machine's memory", "os.open('/dev/mem', os.O_RDWR)"),
    hidden("a terminal", "os.open('/dev/tty', os.O_RDWR)"),
    hidden("the kernel's settings", "open('/proc/sys/kernel/printk', 'w').write('7')"),
)
def test_nothing_is_written(attack: Check, hostile: Hostile) -> None:
    attack(hostile)


def test_it_can_read_the_libraries_and_waste_its_output(attack: Check) -> None:
    attack(
        Hostile(
            name="reading",
            attempt="""
            import colorsys, inspect
            assert 'def ' in inspect.getsource(np.convolve) and open('/dev/null').read() == ''
            """,
            failure=None,
        )
    )


def test_readable_paths_hide_this_project(tmp_path: Path) -> None:
    import evaluators
    import kernels

    folders = [Path(str(package.__file__)).parent for package in (evaluators, kernels)]
    for path in map(Path, readable_paths()):
        assert not any(folder.is_relative_to(path) for folder in folders)


def test_readable_paths_hide_a_problem_that_lies_in_a_library() -> None:
    import numpy

    library = Path(numpy.__file__).resolve().parent
    found = [Path(each) for each in readable_paths(hidden=[str(library / "lib")])]
    assert not any((library / "lib").is_relative_to(each) for each in found)
    assert any((library / "linalg").is_relative_to(each) for each in found)


def test_a_folder_is_covered_without_what_it_hides(tmp_path: Path) -> None:
    for name in ("a/hidden/x", "a/b", "c/d"):
        (tmp_path / name).mkdir(parents=True)
    hidden_folder = tmp_path / "a/hidden"
    assert paths_without(tmp_path / "c", {hidden_folder}) == [tmp_path / "c"]
    assert set(paths_without(tmp_path, {hidden_folder})) == {tmp_path / "a/b", tmp_path / "c"}
    assert paths_without(hidden_folder, {hidden_folder}) == []
