import subprocess
import sys

import pytest

from bertram_hf.utils.files import write_json, write_whole


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), write_whole(path) as (unfinished,):
        unfinished.write_text("half " * 99999 + "\ud800")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_nothing_is_moved_before_all_is_written(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with write_whole(first, second) as (one, two):
        one.write_text("1")
        assert not first.exists()
        two.write_text("2")
    assert (first.read_text(), second.read_text()) == ("1", "2")


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "new" / "folder"
    for names in (["a", "b"], ["c"]):
        with write_whole(folder) as (unfinished,):
            unfinished.mkdir()
            for name in names:
                (unfinished / name).touch()
    assert [path.name for path in folder.iterdir()] == ["c"]
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]


def test_a_file_that_was_not_written_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), write_whole(tmp_path / "a"):
        pass


def test_processes_that_write_the_same_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "a.json"
    code = "import sys; from pathlib import Path; from bertram_hf.utils.files import write_json\n"
    code += "for i in range(300): write_json(Path(sys.argv[1]), list(range(2000)))"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    write_json(path, [])
    assert [writer.wait() for writer in writers] == [0, 0]
    assert path.read_text().count("\n") == 2002
