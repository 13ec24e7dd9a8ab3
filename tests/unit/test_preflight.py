"""Checks before a model loads: all problems in one list; scorers are tried; what cannot be scored may be left out."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from faulty_server import MODEL, FaultyServer
from safetensors.torch import load_file, save_file

from cultureval.metrics.alqasida import dialect_models
from cultureval.models.choice import check_model
from cultureval.models.loading import load
from cultureval.models.settings import read_settings
from cultureval.runtime import extras
from cultureval.runtime.errors import CulturevalError, ProblemList, Problems
from cultureval.runtime.settings import current_settings, use_settings, variable_of
from cultureval.samples.tiny_models.classifiers import build_tiny_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm
from cultureval.tasks.manifest import ManifestRow, write_manifest
from cultureval.tasks.preflight import preflight


@pytest.fixture(scope="module")
def built(tiny_instruments, tmp_path_factory):
    """Settings with tiny scorers on the samples."""
    encoder = str(build_tiny_encoder(tmp_path_factory.mktemp("scorers") / "encoder"))
    return tiny_instruments | {
        "bertscore_model": encoder,
        "caption_bertscore_model": encoder,
        "caption_bertscore_layer": 2,
        "data_root": "samples",
        "model_settings": {"device": "cpu"},
    }


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_tiny_causal_lm(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture
def plan_of(built, model, tmp_path):
    """`preflight` with the tiny scorers, some settings changed."""

    def plan(*names, model=model, skip=False, output=tmp_path / "out", **changed):
        settings, wrong = current_settings(), ProblemList()
        for name, value in (built | {"cache": tmp_path / "cache"} | changed).items():
            with wrong.collecting():
                settings = settings.with_(**{name: value})
        with use_settings(settings):
            return preflight(list(names), partial(check_model, str(model)), str(output), skip, wrong=wrong)

    return plan


def copied(folder, place, change):
    """A copy of a model's folder whose weights are changed."""
    shutil.copytree(folder, place)
    weights = load_file(place / "model.safetensors")
    change(weights)
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    return place


@pytest.mark.slow
def test_a_sound_run_has_a_plan_with_its_rows(plan_of, tmp_path):
    plan = plan_of("qimma_aratrust", "alqasida_mono:habibi_egy", "alqasida_mt:btec_eng_to_egy", "qimma_medarabiq_qa")
    assert plan.model.file.name == "hf.py" and not plan.missing and not plan.unscorable
    assert len(plan.tasks) == 5
    assert not (tmp_path / "out").exists()


def test_all_problems_are_in_one_list(plan_of, model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    settings = tmp_path / "model.yaml"
    settings.write_text(f"model_name: {folder}\ndtype: float12\n")
    (tmp_path / "file").write_text("")
    with pytest.raises(Problems) as error:
        plan_of(
            *("qimma_aratrus", "qimma_aradice:Egypt|2", "alqasida_mono:habibi_egy", "qimma_medarabiq_qa"),
            model=settings,
            output=tmp_path / "file" / "out",
            lid_model="/no/such/lid",
            bertscore_model="/no/such/bert",
        )
    wanted = ("--output-dir", "Did you mean qimma_aratrust", "float12")
    wanted += ("has 0 few-shot examples", "The LID model '/no/such/lid'", "The BERTScore model '/no/such/bert'")
    problems = error.value.problems
    assert len(problems) == len(wanted), problems
    for text in wanted:
        assert sum(text in problem for problem in problems) == 1, (text, problems)
    lines = str(error.value).splitlines()
    assert lines[0].startswith("6 problems") and len(lines) == 7


def test_a_manifest_of_other_data_than_the_tasks_read_is_refused(plan_of, tmp_path):
    row = ManifestRow(source="org/other", revision="1", subset="s", row="a.csv:0", hash="0" * 64, decision="discard")
    file = tmp_path / "manifest.jsonl"
    write_manifest(file, [row])
    with pytest.raises(CulturevalError, match="is of org/other, and the tasks read") as error:
        plan_of("qimma_aratrust", manifest=str(file))
    assert not isinstance(error.value, Problems)
    read = str(error.value).partition("the tasks read ")[2].partition(":")[0]
    write_manifest(file, [row, row.model_copy(update={"source": read})])
    assert plan_of("qimma_aratrust", manifest=str(file)).tasks == ["qimma_aratrust|0"]


def test_tasks_of_a_group_without_data_are_one_problem(plan_of, tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(CulturevalError, match="qimma_aradice:Egypt: no data") as error:
        plan_of("qimma_aradice:Egypt", "qimma_aradice:Syria", data_root=str(tmp_path / "data"))
    assert not isinstance(error.value, Problems)


@pytest.mark.slow
def test_what_cannot_be_scored_is_left_out_if_wanted(plan_of, capsys):
    names = ("qimma_aratrust", "alqasida_mt:btec_eng_to_egy", "jeem_caption:eg")
    plan = plan_of(*names, skip=True, flores200_model="/no/such/model")
    assert plan.tasks == ["qimma_aratrust|0"]
    assert "FLORES-200" in plan.unscorable["alqasida_mt:btec_eng_to_egy|0"]
    assert "takes text only" in plan.unscorable["jeem_caption:eg|0"]
    assert f"left out: {names[1]}|0. spBLEU needs" in capsys.readouterr().err
    lacking = {"flores200_model": "/no/such/model", "lid_model": "/no/such/lid"}
    with pytest.raises(CulturevalError, match="No task is left.*FLORES-200.*LID"):
        plan_of(names[1], "alqasida_mt:btec_egy_to_eng", skip=True, **lacking)
    with pytest.raises(CulturevalError, match="takes text only"):
        plan_of(names[2])


def test_a_sandbox_that_cannot_start_is_one_of_the_problems(plan_of, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problems) as error:
        plan_of("qimma_code:humaneval_plus", "qimma_medarabiq_qa", bertscore_model="/no/such/bert")
    assert [name in str(error.value) for name in ("bubblewrap", "/no/such/bert")] == [True, True]
    assert len(error.value.problems) == 2


def test_without_camel_tools_the_tasks_that_need_it_are_refused_with_the_command_that_installs_it(plan_of, monkeypatch):
    """As on Python 3.13, where it is not installed with the core."""
    asked_for = extras._installed
    monkeypatch.setattr(extras, "_installed", lambda name: name != "camel-tools" and asked_for(name))
    extras.require_camel_tools.cache_clear()
    with pytest.raises(CulturevalError) as error:
        plan_of("qimma_fannorflop", "jeem_vqa:eg", "qimma_aratrust")
    assert str(error.value).count(extras.CAMEL_TOOLS_COMMAND) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./no/model", "There is no model folder"),
        ("http://localhost:8000/v1", "YAML file with `base_url`"),
        *((name, "cannot be loaded|no model folder") for name in ("nothing/", "['a']", "a b")),
    ],
)
def test_a_model_that_is_not_there_is_one_problem(name, message):
    with pytest.raises(CulturevalError, match=message) as error:
        check_model(name, images=False, likelihoods=True)
    assert not isinstance(error.value, Problems)


def test_broken_data_of_several_tasks_are_told_together(plan_of, tmp_path):
    for repo, row in {"asas-ai/AraTrust": {"Question": "س؟", "A": ""}, "adlbh/MizanQA-v0": {"question": "س؟"}}.items():
        folder = tmp_path / "root" / repo
        folder.mkdir(parents=True)
        name = "train.jsonl" if "Mizan" in repo else "test.jsonl"
        (folder / name).write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(Problems) as error:
        plan_of("qimma_aratrust", "qimma_mizanqa", "qimma_palmx", data_root=str(tmp_path / "root"), form="original")
    assert [name in str(error.value) for name in ("qimma_aratrust", "qimma_mizanqa")] == [True, True]
    assert len(error.value.problems) == 2  # the group without data is left out


HEAD = "classifier.weight"


def refused(built, place, kind, *parts):
    option = dialect_models.SETTINGS[kind]
    with use_settings(current_settings().with_(**built | {option: str(place)})):
        with pytest.raises(CulturevalError, match=f"The {kind} model .*{variable_of(option)}") as error:
            dialect_models.check_model(kind)
    assert all(part in str(error.value) for part in (place.name, *parts)), str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["NADI"])
def test_damaged_and_exchanged_classifiers_are_stopped_by_name(built, tmp_path, kind):
    folder, other = (Path(built[dialect_models.SETTINGS[one]]) for one in (kind, "ALDi" if kind == "NADI" else "NADI"))
    refused(built, other, kind, "outputs, not")
    whole = (folder / "model.safetensors").read_bytes()
    for size in (0, 7, 500, len(whole) // 2, len(whole) - 1):
        place = tmp_path / f"cut_{size}"
        shutil.copytree(folder, place)
        (place / "model.safetensors").write_bytes(whole[:size])
        refused(built, place, kind)
    headless = copied(folder, tmp_path / "headless", lambda weights: weights.pop(HEAD))
    refused(built, headless, kind, "lacks 1 of the weights")


def test_a_language_model_of_other_labels_is_refused(built, tmp_path):
    whole = Path(built["lid_model"], "model.bin").read_bytes()
    file = tmp_path / "lid.bin"
    file.write_bytes(whole.replace(b"__label__arb_Arab", b"__label__ar_000000").replace(b"eng_Latn", b"en_00000"))
    refused(built, file, "LID", "its labels are not ISO 639-3 codes")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
        (lambda folder: _configure(folder, dtype="float31"), "cannot be loaded.*float31"),
    ],
)
def test_what_a_folder_lacks_is_named_before_it_loads(model, tmp_path, change, message):
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    change(folder)
    with pytest.raises(CulturevalError, match=message):
        check_model(str(folder), images=False, likelihoods=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs.github.com"), "cannot be l"),
        (lambda folder: _cut(folder / "model.safetensors"), "cannot be loaded"),
        (lambda folder: _configure(folder, num_hidden_layers=3), "lacks .* of the weights"),
        (lambda folder: _configure(folder, hidden_size=128), "cannot be loaded"),
    ],
)
def test_weights_that_do_not_fit_are_refused_when_they_load(model, tmp_path, change, message):
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    change(folder)
    with pytest.raises(CulturevalError, match=message):
        load(read_settings(str(folder)))


def _cut(file):
    file.write_bytes(file.read_bytes()[:-100])


def _configure(folder, **settings):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def test_a_server_must_answer_have_the_model_and_for_choices_a_tokenizer(model, tmp_path):
    def settings(url, name=MODEL, more=""):
        (tmp_path / "model.yaml").write_text(f"model: {name}\nbase_url: {url}\n{more}")
        return str(tmp_path / "model.yaml")

    with FaultyServer() as server:
        assert check_model(settings(server.url), images=True, likelihoods=False).no_likelihoods is None
        checked = check_model(settings(server.url, more=f"tokenizer: {model}"), images=True, likelihoods=True)
        assert checked.no_likelihoods is None and checked.file.name == "openai_api.py"
        without = check_model(settings(server.url), images=True, likelihoods=True)
        assert "need the model's tokenizer" in without.no_likelihoods
        assert not server.requests  # lists of models only
        server.features.add("unknown_models")
        with pytest.raises(CulturevalError, match=f"does not serve 'org/other'.*{MODEL}"):
            check_model(settings(server.url, "org/other"), images=True, likelihoods=False)
    with pytest.raises(Problems, match="tokeniser.*\n.*concurrency"):
        check_model(settings(server.url, more="tokeniser: x\nconcurrency: 0"), images=True, likelihoods=False)
    with pytest.raises(CulturevalError, match="start the server"):
        check_model(settings(server.url), images=True, likelihoods=False)


@pytest.mark.slow
def test_judges_must_answer_and_have_their_models(plan_of, tmp_path):
    with FaultyServer(features=("unknown_models",)) as server:
        judges = {"a": MODEL, "b": "org/other"}
        for name, served in judges.items():
            (tmp_path / f"{name}.yaml").write_text(f"{{name: {name}, model: {served}, base_url: '{server.url}'}}")
        files = tuple(str(tmp_path / f"{name}.yaml") for name in judges)
        with pytest.raises(CulturevalError) as error:
            plan_of("jeem_caption:eg", model=tmp_path / "nothing.yaml", judges=files)
        (tmp_path / "model.yaml").write_text(f"{{model: {MODEL}, base_url: '{server.url}'}}")
        plan = plan_of("jeem_caption:eg", model=tmp_path / "model.yaml", judges=files, skip=True, model_settings={})
    text = str(error.value)
    assert plan.tasks == ["jeem_caption:eg|0"] and not plan.unscorable
    assert plan.judges == files[:1] and "does not serve 'org/other'" in plan.unjudged["b"] and len(plan.unjudged) == 1
    assert "The judge b: " in text and "does not serve 'org/other'" in text and "The judge a" not in text


def make_nan(weights):
    weights["classifier.weight"][0, 0] = float("nan")


@pytest.mark.parametrize("kind", ["ALDi"])
def test_classifiers_with_weights_that_are_not_numbers_are_refused_by_name(built, tmp_path, kind):
    option = dialect_models.SETTINGS[kind]
    folder = copied(built[option], tmp_path / "broken", make_nan)
    with use_settings(current_settings().with_(**built | {option: str(folder)})):
        with pytest.raises(CulturevalError, match=r"broken'.*weights that are not numbers"):
            dialect_models.check_model(kind)
