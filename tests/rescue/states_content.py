"""What lies in the work tree: names, kinds, line ends, filters, and what git is told to ignore."""

import os
import shutil
import socket
from pathlib import Path

from tests.rescue.states_start import Left, State, after, configured, dirty
from tests.support import commit, git, write

LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def every_kind(root: Path) -> Left:
    write(root / "edited.txt", "unstaged\n")
    write(root / "staged.txt", "staged\n")
    git(root, "add", "staged.txt")
    (root / "deleted.txt").unlink()
    (root / "tool.sh").chmod(0o755)
    (root / "link").symlink_to("nowhere at all")
    git(root, "mv", "kept.txt", "renamed.txt")
    write(root / "deep/er/new.txt", "new\n")
    return [
        *("edited.txt", "staged.txt", "deleted.txt", "tool.sh", "link"),
        *("kept.txt", "renamed.txt", "deep/er/new.txt"),
    ]


def named(*names: bytes) -> Left:
    return [*names]


def files_of(root: Path, *names: bytes) -> Left:
    """A file under each name, with the name as its content."""
    for name in names:
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(name)
    return [*names]


def odd_names(root: Path) -> Left:
    return files_of(
        root,
        *(b"new\nline", b"lat\xe9n", b"-rf", b":(top)x", b"*", b'quo"te', b"back\\slash", b"tab\t"),
        *(b" space ", "smile \U0001f600".encode(), b"n" * 255, b"\x1b[31mred", b"a:b", b"%41"),
    )


def names_that_fold(root: Path) -> Left:
    """Different files here, the same on other systems."""
    composed, decomposed = "caf\u00e9".encode(), "cafe\u0301".encode()
    return files_of(root, b"Case", b"case", b"CASE", composed, decomposed)


def names_for_windows(root: Path) -> Left:
    return files_of(root, b"aux", b"con.txt", b"trailing.", b"trailing ", b"a\\b", b"c:d")


def refused_file(root: Path) -> Left:
    return [*dirty(root), *files_of(root, b"git~1")]


def refused_folder(root: Path) -> Left:
    return [*dirty(root), *files_of(root, b".GIT/config")]


def refused_by_hfs(root: Path) -> Left:
    return [*dirty(root), *files_of(root, ".g\u200cit".encode())]


def swapped_kinds(root: Path) -> Left:
    """A file becomes a folder, a folder a file, a file a link, a folder a link."""
    (root / "kept.txt").unlink()
    write(root / "kept.txt/now.txt", "a folder\n")
    shutil.rmtree(root / "folder")
    write(root / "folder", "a file\n")
    (root / "edited.txt").unlink()
    (root / "edited.txt").symlink_to("mine.txt")
    return ["kept.txt", "kept.txt/now.txt", "folder/inside.txt", "folder", "edited.txt"]


def folder_to_link(root: Path) -> Left:
    shutil.move(root / "folder", root / "moved")
    (root / "folder").symlink_to("moved")
    return ["folder/inside.txt", "folder", "moved/inside.txt"]


def links(root: Path) -> Left:
    for name, target in {
        "dangling": "nowhere",
        "round": "round",
        "up": "..",
        "out": "/etc/shadow",
        "odd": "new\nline",
    }.items():
        (root / name).symlink_to(target)
    return ["dangling", "round", "up", "out", "odd"]


def hard_links(root: Path) -> Left:
    write(root / "one.txt", "one file, two names\n")
    (root / "two.txt").hardlink_to(root / "one.txt")
    return ["one.txt", "two.txt"]


def new_folder(root: Path) -> Left:
    write(root / ".gitignore", "*.log\n")
    git(root, "add", ".gitignore")
    git(root, "commit", "-q", "-m", "Ignore logs")
    write(root / "package/one.py", "one\n")
    write(root / "package/sub/two.py", "two\n")
    write(root / "package/noise.log", "noise\n")
    return ["package/"]


def mode_alone(root: Path) -> Left:
    (root / "tool.sh").chmod(0o755)
    return ["tool.sh"]


def odd_modes(root: Path) -> Left:
    write(root / "private.txt", "for the owner alone\n").chmod(0o600)
    write(root / "sticky.sh", "with more bits\n").chmod(0o4711)
    write(root / "none.txt", "for nobody\n").chmod(0)
    return ["private.txt", "sticky.sh", "none.txt"]


def modes_ignored(root: Path) -> Left:
    git(root, "config", "core.fileMode", "false")
    write(root / "new.sh", "a program\n").chmod(0o755)
    (root / "edited.txt").chmod(0o755)
    return [*dirty(root), "new.sh"]


def empty_folders(root: Path) -> Left:
    (root / "empty/er").mkdir(parents=True)
    return dirty(root)


def empty_file(root: Path) -> Left:
    write(root / "empty.txt", "")
    write(root / "edited.txt", "")
    return ["empty.txt", "edited.txt"]


def odd_times(root: Path) -> Left:
    left = dirty(root)
    os.utime(root / "new.txt", (4_000_000_000, 4_000_000_000))
    os.utime(root / "edited.txt", (-1000, -1000))
    return left


def case_folding(root: Path) -> Left:
    git(root, "config", "core.ignoreCase", "true")
    write(root / "Edited.TXT", "another file\n")
    return [*dirty(root), "Edited.TXT"]


def line_ends(root: Path) -> Left:
    git(root, "config", "core.autocrlf", "true")
    write(root / "edited.txt", b"one\r\ntwo\r\n")
    write(root / "mixed.txt", b"one\r\ntwo\n")
    write(root / "binary.bin", b"\0\r\n\0")
    return ["edited.txt", "mixed.txt", "binary.bin"]


def mixed_line_ends(root: Path) -> Left:
    write(root / ".gitattributes", "* text=auto\n")
    write(root / "mixed.txt", b"one\r\ntwo\nthree\r\n")
    return [".gitattributes", "mixed.txt"]


def line_ends_on_input(root: Path) -> Left:
    git(root, "config", "core.autocrlf", "input")
    write(root / "dos.txt", b"one\r\ntwo\r\n")
    return [*dirty(root), "dos.txt"]


def line_ends_committed_as_they_are(root: Path) -> Left:
    write(root / "dos.txt", b"one\r\n")
    git(root, "add", "dos.txt")
    git(root, "commit", "-q", "-m", "Add dos.txt")
    git(root, "config", "core.autocrlf", "true")
    write(root / "dos.txt", b"one\r\ntwo\r\n")
    return ["dos.txt"]


def safe_line_ends(root: Path) -> Left:
    git(root, "config", "core.autocrlf", "input")
    git(root, "config", "core.safecrlf", "true")
    write(root / "mixed.txt", b"one\r\ntwo\n")
    return [*dirty(root), "mixed.txt"]


def other_encoding(root: Path) -> Left:
    write(root / ".gitattributes", "*.utf16 working-tree-encoding=UTF-16LE\n*.id ident\n")
    write(root / "wide.utf16", "wide\n".encode("utf-16-le"))
    write(root / "who.id", "$Id: something else $\n")
    return [".gitattributes", "wide.utf16", "who.id"]


def wrong_encoding(root: Path) -> Left:
    """What the file has is not in the encoding that it is said to have: git refuses to add it."""
    write(root / ".gitattributes", "*.utf16 working-tree-encoding=UTF-16\n")
    write(root / "broken.utf16", b"\xff\xfeodd")
    return [*dirty(root), ".gitattributes", "broken.utf16"]


def filtered(clean: str, *, required: bool) -> State:
    def build(root: Path) -> Left:
        write(root / ".git/info/attributes", "*.bin filter=own\n")
        git(root, "config", "filter.own.clean", f"touch '{root.parent}/ran'; {clean}")
        git(root, "config", "filter.own.required", str(required).lower())
        write(root / "asset.bin", "an asset\n")
        return [*dirty(root), "asset.bin"]

    held = {"asset.bin": "filter: own"}
    return State(build, held=held, remains=("?? asset.bin",), naive_loses=True, runs=True)


def lfs_missing(root: Path) -> Left:
    """As git-lfs sets it up, on a machine that has no git-lfs."""
    for name in ("clean", "smudge", "process"):
        git(root, "config", f"filter.lfs.{name}", f"git-lfs-that-is-not-there {name}")
    git(root, "config", "filter.lfs.required", "true")
    write(root / ".git/info/attributes", "*.bin filter=lfs\n")
    write(root / "asset.bin", "an asset\n")
    return [*dirty(root), "asset.bin"]


def lfs_pointers(root: Path) -> Left:
    write(root / "asset.bin", LFS_POINTER)
    return [*dirty(root), "asset.bin"]


def special_files(root: Path) -> Left:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(root, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/plug")
        os.close(here)
    return dirty(root)


def file_to_pipe(root: Path) -> Left:
    (root / "kept.txt").unlink()
    os.mkfifo(root / "kept.txt")
    return [*dirty(root), "kept.txt"]


def ignored(root: Path) -> Left:
    """What was ignored before the iteration, and is there in one copy."""
    commit(root, ".gitignore", ".env\n*.db\n")
    write(root / ".env", "SETTING=1\n")
    write(root / "local.db", "rows\n")
    return dirty(root)


def ignored_by_the_agent(root: Path) -> Left:
    write(root / ".gitignore", "*\n")
    return [*dirty(root), ".gitignore"]


def excluded_here(root: Path) -> Left:
    write(root / ".git/info/exclude", "private/\n")
    write(root / "private/notes.txt", "notes\n")
    return dirty(root)


def excluded_by_the_user(root: Path) -> Left:
    excludes = write(root.parent / "excludes", "*.draft\n")
    git(root, "config", "--global", "core.excludesFile", str(excludes))
    write(root / "chapter.draft", "a draft\n")
    return dirty(root)


def tracked_packages(root: Path) -> Left:
    write(root / "node_modules/vendored.js", "vendored\n")
    git(root, "add", "-f", "node_modules")
    git(root, "commit", "-q", "-m", "Vendor")
    write(root / "node_modules/vendored.js", "patched\n")
    return ["node_modules/vendored.js"]


def installed_packages(root: Path) -> Left:
    write(root / "node_modules/a/index.js", "installed\n")
    write(root / "env/pyvenv.cfg", "home = /usr\n")
    write(root / "env/bin/python", "installed\n")
    return dirty(root)


def database(root: Path) -> Left:
    names = ["app.db", "app.db-wal", "app.db-shm"]
    for name in names:
        write(root / name, f"{name}\0")
    return [*names]


def many_files(root: Path) -> Left:
    names = [f"many/{number // 50}/{number}.txt" for number in range(500)]
    for name in names:
        write(root / name, name)
    return ["many/"]


def deep_folder(root: Path) -> Left:
    name = "/".join(["d"] * 60) + "/file.txt"
    write(root / name, "deep\n")
    return [name]


def mass_deletion(root: Path) -> Left:
    names = [f"many/{number}.txt" for number in range(40)]
    for name in names:
        write(root / name, name)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Many")
    shutil.rmtree(root / "many")
    return [*dirty(root), *names]


def all_gone(root: Path) -> Left:
    """Less than a mass, but nothing is left."""
    names = git(root, "ls-files", "-z").split("\0")[:-1]
    for name in names:
        (root / name).unlink()
    write(root / "new.txt", "new\n")
    return [*names, "new.txt"]


def users_own(root: Path) -> Left:
    """Work of the user's from before, staged and not: no part of what the iteration left."""
    write(root / "mine.txt", "staged by the user\n")
    git(root, "add", "mine.txt")
    write(root / "mine.txt", "and edited again\n")
    write(root / "notes.txt", "untracked\n")
    return dirty(root)


def stashed(root: Path) -> Left:
    """Three entries, one of them with untracked files; only the newest has a ref."""
    for number in range(2):
        write(root / "mine.txt", f"stashed {number}\n")
        git(root, "add", "mine.txt")
        write(root / "mine.txt", f"stashed {number}, not added\n")
        git(root, "stash", "push", "-q")
    write(root / "untracked.txt", "stashed, untracked\n")
    git(root, "stash", "push", "-q", "-u")
    return dirty(root)


def looks_bare(root: Path) -> Left:
    """Files that make the work tree look like the inside of a git directory."""
    write(root / "HEAD", "ref: refs/heads/main\n")
    write(root / "objects/info/x", "x\n")
    write(root / "refs/heads/x", "x\n")
    return [*dirty(root), "HEAD", "objects/info/x", "refs/heads/x"]


def attributes_are_a_link(root: Path) -> Left:
    rules = write(root.parent / "rules", "* filter=own\n")
    (root / ".gitattributes").symlink_to(rules)
    return [*dirty(root), ".gitattributes"]


def attributes_in_the_way(root: Path) -> Left:
    (root / ".gitattributes").mkdir()
    write(root / ".gitattributes/file.txt", "a folder of this name\n")
    (root / ".gitignore").mkdir()
    write(root / ".gitignore/file.txt", "a folder of this name\n")
    return [*dirty(root), ".gitattributes/file.txt", ".gitignore/file.txt"]


def refused(build: object, path: str) -> State:
    assert callable(build)
    held = {path: "name: git refuses it"}
    return State(build, held=held, remains=(f"?? {path}",), naive_loses=True)


CONTENT = {
    "plain": State(dirty),
    "every kind of change": State(every_kind),
    "odd names": State(odd_names),
    "names that fold": State(names_that_fold),
    "names that Windows refuses": State(names_for_windows),
    "a file git~1": refused(refused_file, "git~1"),
    "a folder .GIT": refused(refused_folder, ".GIT/config"),
    "a file .git to HFS": State(
        refused_by_hfs,
        held={".g\\u200cit": "name: git refuses it"},
        remains=("?? .g\u200cit",),
    ),
    "kinds swapped": State(swapped_kinds),
    "folder became a link": State(folder_to_link),
    "links": State(links),
    "hard links": State(hard_links),
    "new folder": State(new_folder, naive_loses=True),
    "mode alone": State(mode_alone),
    "odd modes": State(odd_modes),
    "fileMode off": State(modes_ignored, naive_loses=True),
    "empty folders": State(empty_folders),
    "empty files": State(empty_file),
    "times long ago and far ahead": State(odd_times),
    "ignorecase": State(case_folding, naive_loses=True),
    "autocrlf": State(line_ends, naive_loses=True),
    "mixed line ends": State(mixed_line_ends, naive_loses=True),
    "autocrlf input": State(line_ends_on_input, naive_loses=True),
    "autocrlf and a file committed with CRLF": State(line_ends_committed_as_they_are),
    "safecrlf": State(safe_line_ends, naive_loses=True),
    "working-tree-encoding and ident": State(other_encoding, naive_loses=True),
    "not in the encoding that it is said to have": State(
        wrong_encoding,
        held={"broken.utf16": "encoding: not UTF-16"},
        remains=("?? broken.utf16",),
        naive_loses=True,
    ),
    "filter that fails": filtered("false", required=True),
    "filter that destroys": filtered("echo garbage", required=False),
    "filter of git-lfs, which is missing": State(
        lfs_missing, held={"asset.bin": "filter: lfs"}, remains=("?? asset.bin",), naive_loses=True
    ),
    "pointers of git-lfs": State(lfs_pointers),
    "special files": State(special_files, skipped=("pipe: a special file", "plug: a special file")),
    "tracked file became a pipe": State(
        file_to_pipe,
        held={"kept.txt": "not_saved: a special file"},
        remains=(" M kept.txt",),
        skipped=("kept.txt: a special file",),
        naive_loses=True,
    ),
    "ignored": State(ignored, naive_loses=True),
    "ignored by the agent": State(
        ignored_by_the_agent,
        held={"new.txt": "ignored", ".gitignore": "ignored"},
        naive_loses=True,
    ),
    "excluded in the repository": State(excluded_here, naive_loses=True),
    "excluded by the user": State(excluded_by_the_user, naive_loses=True),
    "tracked file among installed packages": State(tracked_packages),
    "installed packages": State(
        installed_packages,
        remains=("?? env/bin/python", "?? env/pyvenv.cfg", "?? node_modules/a/index.js"),
    ),
    "a database": State(database),
    "many files": State(many_files),
    "a deep folder": State(deep_folder),
    "mass deletion": State(mass_deletion, "not_plain:mass_deletion"),
    "all gone": State(all_gone),
    "work of the user's own": State(
        users_own, remains=("?? notes.txt", "MM mine.txt"), naive_loses=True
    ),
    "stash": State(stashed, naive_loses=True),
    "looks like a bare repository": State(looks_bare),
    "attributes are a link": State(attributes_are_a_link),
    "attributes and ignore rules are folders": State(attributes_in_the_way, sound=False),
    "every file large": State(configured(core__bigFileThreshold="1")),
    "compression off": State(configured(core__compression="0")),
    "links as files": State(after(lambda root: git(root, "config", "core.symlinks", "false"))),
}
