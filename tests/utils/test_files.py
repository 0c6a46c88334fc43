import re
import subprocess
import sys

import pytest

from bertram_hf.utils.files import only_writer, read_json, refuse_missing_folder, write_json, write_whole


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


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "must hold JSON; it cannot be read"), ("[" * 100_000, "must hold JSON"), ("[]", "must hold a JSON object")],
)
def test_damaged_json_is_one_clear_error(tmp_path, content, message):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=rf"a\.json {message}.*Save the folder again"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["./x", "~/x", "/no/x", "../x", "a/b/c", "here/x", "x/", "a\\b"])
def test_missing_local_folders_are_named(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(FileNotFoundError, match=rf"^There is no folder {re.escape(name)}\. Check the path\.$"):
        refuse_missing_folder(name)


def test_folders_and_names_of_the_hub_are_not_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    for name in ("here", "./here", "here/", "bert-base-uncased", "user/model"):
        refuse_missing_folder(name)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="Expected a folder; file is a file"):
        refuse_missing_folder("file")


def test_one_process_writes_an_output_at_a_time(tmp_path):
    output = tmp_path / "new" / "out"
    code = "import sys; from bertram_hf.utils.files import only_writer\n"
    code += "with only_writer(sys.argv[1]): print('has it', flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", code, output], stdin=-1, stdout=-1, text=True)
    assert other.stdout.readline() == "has it\n"
    with (
        pytest.raises(ValueError, match="to be written by one process; another one is writing it"),
        only_writer(output),
    ):
        pass
    other.kill()
    other.wait()
    with only_writer(output):
        pass
    assert list(output.parent.iterdir()) == []
