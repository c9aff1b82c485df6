"""Work folders leave nothing behind, whoever dies."""

import subprocess
import sys
from pathlib import Path

from hiera_mcp.sandbox.launcher.work import PREFIX, WorkRoot

DIE = """
import os, sys, pathlib
from hiera_mcp.sandbox.launcher.work import WorkRoot
root = WorkRoot.create(pathlib.Path(sys.argv[1]))
(root.make("job") / "file").write_text("left")
os._exit(9)
"""


def test_a_folder_is_gone_after_its_job_with_all_that_the_job_left(tmp_path: Path):
    root = WorkRoot.create(tmp_path)
    with root.folder("job") as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "link").symlink_to(tmp_path)
    assert not folder.exists() and root.path.exists()


def test_removing_a_folder_does_not_follow_its_links(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("kept")
    root = WorkRoot.create(tmp_path)
    with root.folder("job") as folder:
        (folder / "link").symlink_to(victim)
    root.remove()
    assert (victim / "file").read_text() == "kept"


def test_the_root_of_a_dead_launcher_is_removed_at_the_next_start_and_that_of_a_living_one_is_not(tmp_path: Path):
    living = WorkRoot.create(tmp_path)
    subprocess.run([sys.executable, "-c", DIE, str(tmp_path)], check=False)
    assert len(list(tmp_path.glob(PREFIX + "*"))) == 2
    newest = WorkRoot.create(tmp_path)
    assert sorted(tmp_path.glob(PREFIX + "*")) == sorted((living.path, newest.path))


def test_other_users_may_pass_through_a_root_and_cannot_list_it(tmp_path: Path):
    root = WorkRoot.create(tmp_path)
    assert root.path.stat().st_mode & 0o777 == 0o711


def test_a_tree_too_deep_for_recursion_and_folders_without_permissions_are_removed(tmp_path: Path):
    root = WorkRoot.create(tmp_path)
    with root.folder("job") as folder:
        script = "import os\nfor _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')\n"
        subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)
        (folder / "closed" / "inner").mkdir(parents=True)
        (folder / "closed").chmod(0)
    assert not folder.exists()
