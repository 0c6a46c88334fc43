import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys

import pytest
from datasets import Dataset, concatenate_datasets, disable_progress_bars

from bertram_hf.cli import main
from bertram_hf.corpus.build import CorpusSummary, build_corpus
from bertram_hf.corpus.inputs import identify, list_slices

pytest.importorskip("datatrove")

from support.tiny_corpus import QUIET, make_settings, read_output, write_corpus

from bertram_hf.corpus.executors import plan_phases, slurm_executors


@pytest.fixture(autouse=True)
def datasets_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "datasets-cache"))
    disable_progress_bars()


def test_result_does_not_depend_on_workers_or_the_split_into_files(tmp_path, monkeypatch):
    texts = write_corpus(tmp_path / "in")
    build_corpus(tmp_path / "in", tmp_path / "one", min_count=5, num_parts=2, **QUIET)
    one = read_output(tmp_path / "one")
    monkeypatch.setattr("bertram_hf.corpus.inputs.PIECE_SIZE", 3000)
    assert len(list_slices(tmp_path / "in")) > 8
    build_corpus(tmp_path / "in", tmp_path / "many", min_count=5, num_parts=2, num_workers=2, **QUIET)
    assert read_output(tmp_path / "many") == one
    (tmp_path / "joined.txt").write_text("\n".join(reversed(texts)) + "\n", encoding="utf-8")
    build_corpus(tmp_path / "joined.txt", tmp_path / "joined", min_count=5, num_parts=2, **QUIET)
    joined = read_output(tmp_path / "joined")
    assert {name: joined[name] for name in joined if name != "corpus.json"} == {
        name: one[name] for name in one if name != "corpus.json"
    }


def test_ray_cluster_with_two_workers_gives_the_same(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    write_corpus(tmp_path / "in", num_files=2)
    monkeypatch.setattr("bertram_hf.corpus.inputs.PIECE_SIZE", 20_000)
    build_corpus(tmp_path / "in", tmp_path / "local", min_count=5, num_parts=1, **QUIET)
    busy = {"worker_niceness": 0}  # else a busy machine leaves the workers almost no time
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", _system_config=busy)
    try:
        options = {"mem_per_cpu_gb": 0.5}
        build_corpus(
            tmp_path / "in", tmp_path / "ray", min_count=5, num_parts=1, executor="ray", num_workers=2,
            executor_options=options, **QUIET,
        )  # fmt: skip
    finally:
        ray.shutdown()
    assert read_output(tmp_path / "ray") == read_output(tmp_path / "local")


def test_slurm_jobs_can_be_made_and_pickled(tmp_path, monkeypatch):
    import dill

    write_corpus(tmp_path / "in")
    monkeypatch.setattr("bertram_hf.corpus.inputs.PIECE_SIZE", 3000)
    settings = make_settings(work=str(tmp_path / ".work"))
    phases = plan_phases(list_slices(tmp_path / "in"), settings, {})
    executors = slurm_executors(phases, settings, num_workers=4, options={"partition": "cpu", "time": "1:00:00"})
    assert [executor.depends for executor in executors] == [None, *executors[:-1]]
    assert "--array=0-1%2" in executors[1].get_launch_file_contents(executors[1].get_sbatch_args(2), "run")
    assert len(dill.loads(dill.dumps(executors[2])).pipeline) == 2
    assert pickle.loads(pickle.dumps(settings)) == settings
    with pytest.raises(ValueError, match="needs executor_options"):
        build_corpus(tmp_path / "in", tmp_path / "out", executor="slurm", **QUIET)


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """Puts a program in the place of Slurm's that only tells a job's number. Returns the file of its calls."""
    (tmp_path / "bin").mkdir()
    calls = tmp_path / "calls"
    program = tmp_path / "bin" / "sbatch"
    program.write_text(f"#!/bin/sh\necho called >> {calls}\necho Submitted batch job $(wc -l < {calls})\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return calls


def test_slurm_jobs_are_submitted_once(tmp_path, sbatch, capsys):
    write_corpus(tmp_path / "in", num_files=1)
    options = ["--lower-case", "--min-count", "5", "--executor-options", '{"partition": "cpu", "time": "1:00:00"}']
    command = ["corpus", str(tmp_path / "in"), str(tmp_path / "out"), "--json", *options]
    assert main([*command, "--executor", "slurm"]) == 0
    assert json.loads(capsys.readouterr().out) == {"submitted": True}
    num_calls = len(sbatch.read_text().splitlines())
    record = tmp_path / "out" / ".work" / "submitted.json"
    for changes in (["--executor", "slurm"], ["--executor", "local"], ["--executor", "local", "--seed", "1"]):
        assert main([*command, *changes]) == 1
        err = capsys.readouterr().err
        assert "Expected the Slurm jobs 1,3,5,7,9 to have written" in err  # the others merge statistics
        assert f"delete {record} and run the same again" in err
    assert len(sbatch.read_text().splitlines()) == num_calls == 10
    record.unlink()
    assert main([*command, "--executor", "slurm"]) == 0
    assert len(sbatch.read_text().splitlines()) == 20


def test_finished_slurm_jobs_do_not_stop_the_next_run(tmp_path, sbatch):
    write_corpus(tmp_path / "in", num_files=1)
    options = {"executor": "slurm", "executor_options": {"partition": "cpu", "time": "1:00:00"}, **QUIET}
    assert build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, **options) is None
    work = tmp_path / "out" / ".work"
    shutil.move(work, tmp_path / "kept")
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, **QUIET)  # what the jobs would have written
    shutil.move(tmp_path / "kept", work)
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, seed=1, **QUIET)
    assert not work.exists()


def test_streamed_datasets_of_other_length_are_told_apart():
    rows = Dataset.from_dict({"text": [f"a kumquat {i} is here" for i in range(300)]}).to_iterable_dataset()
    same = [identify(rows.take(200), "text") for _ in range(2)]
    assert same[0] == same[1]
    others = [rows, rows.take(201), rows.skip(0).take(200), rows.take(250).take(200)]
    assert all(identify(other, "text") != same[0] for other in others)
    joined = [concatenate_datasets([rows, rows.take(n)]) for n in (1, 2)]
    assert identify(joined[0], "text") != identify(joined[1], "text")


def run_until_killed(num_files, folder, output):
    """Builds a corpus in a process that gets kill -9 before it finishes its n-th file. Returns whether it did."""
    child = os.fork()
    if child == 0:
        os.setsid()
        replace, calls = os.replace, iter(range(num_files))

        def replace_or_die(*paths):
            if next(calls, None) is None:
                os.killpg(0, signal.SIGKILL)
            replace(*paths)

        os.replace = replace_or_die
        build_corpus(folder, output, min_count=5, num_parts=2, **QUIET)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_killed_run_is_resumed_with_the_same_result(tmp_path, monkeypatch):
    write_corpus(tmp_path / "in", num_lines=20)
    monkeypatch.setattr("bertram_hf.corpus.inputs.PIECE_SIZE", 8000)
    build_corpus(tmp_path / "in", tmp_path / "whole", min_count=5, num_parts=2, **QUIET)
    whole = read_output(tmp_path / "whole")
    build_corpus(tmp_path / "in", tmp_path / "last", min_count=5, num_parts=2, seed=1, **QUIET)
    num_killed = 0
    for num_files in (0, 4, 8, 12, 16, *range(19, 40)):
        output = tmp_path / f"out{num_files}"
        shutil.copytree(tmp_path / "last", output)  # the result of other settings, which is to be replaced
        was_killed = run_until_killed(num_files, tmp_path / "in", output)
        num_killed += was_killed
        if was_killed:
            build_corpus(tmp_path / "in", output, min_count=5, num_parts=2, **QUIET)
        assert read_output(output) == whole
        if not was_killed:
            break
    assert num_killed > 10


def test_unfinished_work_of_other_settings_is_not_mixed_in(tmp_path, monkeypatch, caplog):
    write_corpus(tmp_path / "in")
    build_corpus(tmp_path / "in", tmp_path / "whole", min_count=5, seed=1, **QUIET)
    with monkeypatch.context() as patch:
        patch.setattr("bertram_hf.corpus.steps.MergeContexts.run", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, seed=0, **QUIET)
    assert (tmp_path / "out" / ".work").is_dir()
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, seed=1, **QUIET)
    assert "beginning anew" in caplog.text
    assert read_output(tmp_path / "out") == read_output(tmp_path / "whole")
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, seed=1, **QUIET)
    assert "nothing to do" in caplog.text


DISK_FULL = """
import resource, sys
from bertram_hf.corpus import build_corpus
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    build_corpus(sys.argv[1], sys.argv[2], lower_case=True, words=["kumquat", "lemon"], max_contexts=5000, num_parts=1,
                 show_progress=False)
except OSError as error:
    print(error)
"""


def test_full_disk_leaves_the_earlier_output_intact(tmp_path):
    write_corpus(tmp_path / "in")
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, **QUIET)
    before = read_output(tmp_path / "out")
    generator = random.Random(0)
    lines = [f"a kumquat and a lemon {generator.getrandbits(128):x} here" for _ in range(3000)]
    (tmp_path / "in" / "large.txt").write_text("\n".join(lines))
    command = [sys.executable, "-c", DISK_FULL, str(tmp_path / "in"), str(tmp_path / "out")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Could not write to {tmp_path / 'out'}: File too large" in said
    after = read_output(tmp_path / "out")
    assert {name: after[name] for name in before} == before
    assert CorpusSummary.load(tmp_path / "out").num_words > 2
