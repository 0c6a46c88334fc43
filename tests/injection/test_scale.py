"""Large packs and many packs: memory, threads, and processes that share what is injected."""

import gc
import sys
import threading
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch
import torch.multiprocessing  # whose pickler shares tensors
from support.tiny_models import FAMILIES
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModel

from bertram_hf import BertramEmbeddingInjector, WordVectors
from bertram_hf.injection.word_index import WordIndex

SIZE = FAMILIES["bert"]["hidden_size"]
NUM_CYCLES = 200


@pytest.fixture
def inject(bert_tokenizer):
    def make(vectors, **settings):
        torch.manual_seed(0)
        model = AutoModel.from_config(AutoConfig.for_model("bert", **FAMILIES["bert"], vocab_size=641)).eval()
        return BertramEmbeddingInjector(model, bert_tokenizer, vectors, mode="replace", **settings)

    return make


def many_words(count):
    return WordVectors([f"quo{number}x" for number in range(count)], torch.randn(count, SIZE).half() * 0.02)


def read(injector, word):
    """Returns what the model sees in the place of a word."""
    ids = injector.tokenizer(word, add_special_tokens=False, return_tensors="pt")["input_ids"]
    return injector.table(ids)[0]


def test_packs_that_come_and_go_take_no_more_memory_or_work(inject, monkeypatch):
    injector = inject(many_words(1000))
    added = []
    add = WordIndex.add
    monkeypatch.setattr(WordIndex, "add", lambda index, word, row: added.append(word) or add(index, word, row))
    sizes = []
    for cycle in range(NUM_CYCLES):
        vectors = {f"zar{cycle}v o{number}": torch.full((SIZE,), 0.01 * number) for number in range(5)}
        injector.add(vectors, "small")
        assert torch.equal(read(injector, f"zar{cycle}v o3"), vectors[f"zar{cycle}v o3"][None])
        if cycle % 2:  # others are swapped
            injector.remove_pack("small")
        index = injector._index
        tables = (index.rows, index._by_run, index._hidden, injector.backend.words, injector.backend.in_place)
        sizes.append([len(injector.table.vectors), *map(len, tables)])
    assert sizes[4:6] * (len(sizes[4:]) // 2) == sizes[4:]
    assert len(injector.table.vectors) < 1000 * 9 / 8 + 20
    assert len(added) == NUM_CYCLES * 5


def test_rows_of_a_removed_pack_keep_their_vectors_until_the_next_pack_but_one(inject):
    injector = inject({"quokka": torch.full((SIZE,), 0.1)})
    ids = injector.tokenizer("quokka", return_tensors="pt")["input_ids"]
    before = injector.table(ids)
    injector.remove_pack("default")
    injector.add({"numbat": torch.full((SIZE,), 0.2)}, "first")
    assert torch.equal(injector.table(ids), before)
    injector.add({"kumquat": torch.full((SIZE,), 0.3)}, "second")
    assert torch.equal(ids, injector.tokenizer("kumquat", return_tensors="pt")["input_ids"])
    assert len(injector.table.vectors) == 2


def test_a_word_of_three_packs_has_the_vector_added_last_of_those_that_are_left(inject):
    injector = inject({"quokka": torch.full((SIZE,), 0.1)})
    injector.add({"Quokka": torch.full((SIZE,), 0.2)}, "second")
    injector.add({"quokka": torch.full((SIZE,), 0.3)}, "third")
    for removed, seen in (("second", 0.3), ("third", 0.1)):
        injector.remove_pack(removed)
        assert torch.equal(read(injector, "quokka"), torch.full((1, SIZE), seen))
    injector.remove_pack("default")
    assert read(injector, "quokka").shape[0] > 1


def test_saved_float16_vectors_stay_mapped_and_small_and_are_never_written_to(inject, tmp_path):
    vectors = many_words(50)
    vectors.save_pretrained(tmp_path)
    loaded = WordVectors.from_pretrained(tmp_path)
    injector, single = inject(loaded), inject(WordVectors(vectors.words, vectors.embeddings.float()))
    assert injector.table.vectors.data_ptr() == loaded.embeddings.data_ptr()
    batch = injector.tokenizer(["quo7x and quo8x", "and"], padding=True, return_tensors="pt")
    assert torch.equal(injector(**batch).last_hidden_state, single(**batch).last_hidden_state)
    assert injector.pack().embeddings.dtype == torch.float16
    third = torch.full((SIZE,), 1 / 3)
    injector.add({"kumquat": third}, "more")
    assert torch.equal(read(injector, "kumquat quo7x"), torch.stack([third, vectors["quo7x"].float()]))
    injector = inject(loaded)
    injector.remove_pack("default")
    for number in range(3):
        injector.add({f"numbat{number}": third}, f"pack{number}")
    assert torch.equal(loaded.embeddings, vectors.embeddings)


def test_texts_are_read_right_while_packs_come_and_go(inject):
    """Readers may find a pack or not, but never the vector of another word. No text is read across two changes."""
    injector = inject(many_words(100))
    wrong, counts, is_over = [], [0] * 3, threading.Event()

    def work(reader):
        while not is_over.is_set():
            seen = read(injector, "quokka")
            if len(seen) == 1 and not (seen > 0).all():
                wrong.append(seen)
            counts[reader] += 1

    def wait():
        before = list(counts)
        while any(count == old for count, old in zip(counts, before, strict=True)) and not is_over.is_set():
            is_over.wait(0.001)

    threads = [threading.Thread(target=work, args=(reader,), daemon=True) for reader in range(3)]
    [thread.start() for thread in threads]
    try:
        for cycle in range(40):
            injector.add({"quokka": torch.full((SIZE,), 0.001 * (cycle + 1))}, "animals")
            wait()
            if cycle % 3 == 0:
                injector.remove_pack("animals")
            injector.add({f"zarvo{cycle}": torch.full((SIZE,), -0.1)}, f"other{cycle % 3}")
            wait()
    finally:
        is_over.set()
        [thread.join() for thread in threads]
    assert wrong == []
    assert min(counts) > 40


class Texts:
    """Texts that are tokenised in the process that loads them; items are what that process holds for itself."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __len__(self):
        return 300

    def __getitem__(self, number):
        self.tokenizer(f"the quo{number * 7}x and the kumquat")
        if number == len(self) - 1:
            gc.collect()  # which writes to each container that it looks at
        return private_bytes()


def private_bytes():
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * int(rollup.partition("Private_Dirty:")[2].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_forked_workers_share_words_and_vectors(inject):
    injector = inject(many_words(100_000))
    held = sum(map(sys.getsizeof, (injector.packs["default"], injector._index.rows, *injector._index.rows)))

    def grow(tokenizer):
        loader = DataLoader(Texts(tokenizer), batch_size=None, num_workers=1, multiprocessing_context="fork")
        sizes = list(loader)
        return sizes[-1] - sizes[0]

    assert held > 10e6
    assert grow(injector.tokenizer) < grow(injector.plain_tokenizer) + held / 2


def test_processes_that_are_spawned_share_the_table(inject):
    injector = inject(WordVectors(["kumquat", *map(str, range(20_000))], torch.randn(20_001, SIZE)))
    injector.share_memory()
    assert injector.table.vectors.is_shared()
    assert len(ForkingPickler.dumps(injector.table)) < injector.table.vectors.nbytes / 100
