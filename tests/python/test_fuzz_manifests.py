"""A short run of the manifest fuzzer, and proof that it sees what it looks for."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from samples import ROOT


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz_manifests", ROOT / "fuzz" / "manifests.py")
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_manifests_are_read_or_refused(fuzz, tmp_path, seed):
    campaign = fuzz.Campaign(seed, tmp_path)
    campaign.run(inputs=400)
    assert campaign.failures == {}
    # Neither so broken that none is read, nor so tame that none is refused.
    assert campaign.read >= 10 and campaign.refused >= 200 and campaign.read + campaign.refused == 400


def test_an_input_is_made_again_from_its_number(fuzz, tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setattr(fuzz, "use", lambda path, data: seen.setdefault(len(seen), data))
    fuzz.Campaign(7, tmp_path).run(inputs=20)
    fuzz.Campaign(7, tmp_path).run(first=11, inputs=1)
    assert seen[20] == seen[11] != seen[12]


FAULTS = {
    "another exception": lambda path, data: 1 // 0,
    "an endless loop": lambda path, data: [None for _ in iter(int, 1)],
    "a message of two lines": lambda path, data: refuse(f"{path}: no\nno"),
    "a message without the file": lambda path, data: refuse("no"),
}


def refuse(message):
    from ciphermill import InputError

    raise InputError(message)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(fuzz, tmp_path, monkeypatch, capsys, fault):
    monkeypatch.setattr(fuzz, "LIMIT", 0.05)
    monkeypatch.setattr(fuzz.manifest, "parse", FAULTS[fault])
    campaign = fuzz.Campaign(3, tmp_path / "saved")
    campaign.run(inputs=2)
    assert sum(campaign.times.values()) == 2 and len(campaign.failures) == 1
    [path] = campaign.failures.values()
    assert path == tmp_path / "saved" / "manifest-3-0.toml" and path.is_file()
    assert f"seed 3, input 0, saved as {path}" in capsys.readouterr().out


@pytest.mark.parametrize("change", [{"name": "a\nb"}, {"key_bits": (100,)}, {"vectors": ("gone",)}])
def test_a_cipher_that_should_have_been_refused_is_seen(fuzz, tmp_path, monkeypatch, change):
    from dataclasses import replace
    from pathlib import Path

    read = fuzz.manifest.find("rc6")
    change = {key: tuple(map(Path, value)) if key == "vectors" else value for key, value in change.items()}
    monkeypatch.setattr(fuzz.manifest, "parse", lambda path, data: replace(read, **change))
    campaign = fuzz.Campaign(3, tmp_path)
    campaign.run(inputs=1)
    assert len(campaign.failures) == 1
