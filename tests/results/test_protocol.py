"""What a score depends on besides the model, as planted runs tell it."""

from planted import choice_row, plant, text_row

from cultureval.runs.loading import load
from cultureval.runs.protocol import differences, protocol
from cultureval.runs.record import ModelRecord, SignatureRecord

TRUST, ASKED = "qimma_aratrust|0", "qimma_gen_aratrust|0"
JUDGED, FLUENCY = "jeem_caption:eg|0", "judge_j_reference_fluency"
REPORT = {"form": "curated", "fingerprint": "1" * 16, "prompt": "curated+paper", "parity": "paper"}
SIGNATURE = SignatureRecord(group="qimma_aratrust|0", fields={"model": "m@1", "rows": 2}, text="")


def protocol_of(folder, task=TRUST, metric="", report=(), row=None, **given):
    rows = [row or choice_row(at, at) for at in range(2)]
    run = load(plant(folder, {task: rows}, reports={task: REPORT | dict(report)}, **given)).runs[0]
    return protocol(run, task, metric)


def test_equal_runs_of_two_models_are_comparable_and_what_differs_is_named(tmp_path):
    signed = {"record": {"signatures": (SIGNATURE,)}}
    one = protocol_of(tmp_path / "a", **signed)
    assert one == protocol_of(tmp_path / "b", model="other", about=ModelRecord(dtype="float16"), **signed)
    changed = {
        "form": {"form": "original"},
        "rows": {"fingerprint": "2"},
        "prompt": {"prompt": "x"},
        "parity": {"parity": "sound"},
    }
    for number, (field, report) in enumerate(changed.items()):
        other = protocol_of(tmp_path / str(number), report=report, **signed)
        assert list(differences(one, other)) == [field]
    assert differences(one, protocol_of(tmp_path / "c", limit=2, **signed)) == {"limit": ("none", "2")}
    prompted = protocol_of(tmp_path / "d", about=ModelRecord(system_prompt_hash="1"), **signed)
    assert differences(one, prompted) == {"system prompt": ("none", "1")}


def test_what_a_stock_file_does_not_say_is_not_told(tmp_path):
    told = protocol_of(tmp_path, stock=True)
    unknown = {"rows", "form", "prompt", "parity", "system prompt", "scorer"}
    assert {name for name, value in told.items() if value == "unknown"} == unknown
    assert told["limit"] == "none"  # LightEval's `max_samples`


def test_settings_of_generation_matter_where_texts_are_generated(tmp_path):
    about = {"about": ModelRecord(settings={"temperature": 0.5, "device": "cpu"})}
    row = text_row(0, {"acc_strict": 1.0})
    warm, cold = (protocol_of(tmp_path / name, ASKED, row=row, **one) for name, one in (("a", about), ("b", {})))
    assert differences(cold, warm) == {"generation": ("as the task says", "temperature=0.5")}
    assert "generation" not in protocol_of(tmp_path / "c", **about)


def test_a_judge_is_part_of_its_own_metrics_protocol_alone(tmp_path):
    line = "judge:j,model:gpt,template:jeem_caption_reference#1"
    own = SignatureRecord(group="jeem_caption|0", fields={"judges": f"judge({line})"}, text="")
    later = SignatureRecord(
        group="j/jeem_caption_reference", fields={}, text=line.replace(",", "|").replace("gpt", "new")
    )
    row = text_row(0, {"cider": 1.0, FLUENCY: 5.0})
    given = {"task": JUDGED, "row": row}
    judged = protocol_of(tmp_path / "a", metric=FLUENCY, record={"signatures": (own,)}, **given)
    again = protocol_of(tmp_path / "b", metric=FLUENCY, record={"signatures": (own, later)}, **given)
    assert differences(judged, again) == {"judge": (line, line.replace("gpt", "new"))}
    assert "judge" not in protocol_of(tmp_path / "c", metric="cider", record={"signatures": (own,)}, **given)
