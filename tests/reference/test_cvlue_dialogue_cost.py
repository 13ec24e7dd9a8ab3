"""Ranking 100 candidates on CVLUE's own sample dialogues: the same ranks as one pass a candidate, far fewer tokens.

The sample (2 images, 10 rounds, 100 candidates each, released by the authors under CC BY-NC-ND) lies beside the
repository; its images are not public, so noise stands for them. The model is a tiny LLaVA that sees an image as 256
tokens, as Qwen-VL does, with a tokenizer trained on the sample's own texts.
"""

import json
import lzma
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image
from tiny_models import picture, plain_scores

from cultureval.metrics.cvlue.ranking import gold_ranks
from cultureval.models.hf import HFModel
from cultureval.models.scoring.token_tree import Branch, build_tree
from cultureval.models.settings import HFModelSettings
from cultureval.prompts.cvlue.rows import dialogue_prompt
from cultureval.runtime.data_options import DataOptions
from cultureval.samples.tiny_models.language_models import build_tiny_vision_lm
from cultureval.samples.tiny_models.text_parts import train_tokenizer
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prepare_subset

SAMPLE = Path(__file__).parents[2].resolve().parent / "shared" / "data" / "cvlue" / "test_example" / "VD"
CHECKED = (0, 9, 14)  # questions that are scored candidate by candidate too


@pytest.fixture(scope="module")
def dialogues(tmp_path_factory):
    """The prepared rows of the sample, and all its texts."""
    if not SAMPLE.is_dir():
        pytest.skip("the authors' sample data are not here")
    root = tmp_path_factory.mktemp("root")
    folder = root / "cvlue" / "VD"
    folder.mkdir(parents=True)
    records, texts = (
        json.loads((SAMPLE / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("gold_2x10rounds_68e095b", "id_maps_subset_for_gold_2x10rounds")
    )
    (folder / "gold.json").write_text(json.dumps({"data": records}), encoding="utf-8")
    asked = [
        {"image_id": one["image_id"], "dialog": [{name: one[name] for name in ("question", "answer_options")}]}
        for one in records
    ]
    (folder / "test_VD.json").write_text(json.dumps(texts | {"dialogs": asked}), encoding="utf-8")
    for number, record in enumerate(records):
        path = root / "cvlue" / record["image"]
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(64, 48, seed=number // 10).save(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTUREVAL_CACHE", str(root / "cache"))
        patch.setenv("CULTUREVAL_JOURNAL", str(root / "journal"))
        subset = prepare_subset(all_tasks()["cvlue_vd"], DataOptions(root=root))
        lines = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
        yield [json.loads(line) for line in lines], [*texts["id2question"].values(), *texts["id2answer"].values()]


@pytest.fixture(scope="module")
def model(tmp_path_factory, dialogues):
    rows, texts = dialogues
    tokenizer = train_tokenizer([*texts, *(row["prompt"] for row in rows)], vocabulary=6000)
    folder = tmp_path_factory.mktemp("models") / "llava"
    build_tiny_vision_lm(folder, chat_template=False, tokenizer=tokenizer, image_size=128)
    # Smaller trees may end between choices that share tokens.
    return HFModel(HFModelSettings(model_name=str(folder), device="cpu", chat_template="off", token_budget=4096))


def count_tokens(model):
    """A list to which every pass of the language model adds its number of tokens, and how to stop that."""
    fed = []
    layer = model.loaded.model.get_input_embeddings()
    return fed, layer.register_forward_hook(lambda module, inputs, output: fed.append(inputs[0].numel()))


@pytest.mark.slow
def test_ranks_are_the_naive_ones_with_30_times_fewer_tokens(model, dialogues):
    rows, _ = dialogues
    assert len(rows) == 20 and all(len(row["choices"]) == 100 for row in rows)
    docs = [dialogue_prompt(row, "cvlue_vd") for row in rows]
    responses = model.loglikelihood([docs[0]])  # settles how this model is scored, by a check of its own
    fed, hook = count_tokens(model)
    responses = responses + model.loglikelihood(docs[1:])
    packed = sum(fed)
    prompts = [model_prompt(model, doc)[0] for doc in docs]
    sizes = [(len(prompt), response.output_tokens) for prompt, response in zip(prompts, responses, strict=True)]
    naive = sum(prompt + len(choice) for prompt, choices in sizes[1:] for choice in choices)
    once_a_question = sum(prompt + sum(map(len, choices)) for prompt, choices in sizes[1:])
    assert packed <= once_a_question
    assert naive >= 30 * packed, f"{naive / packed:.1f} times fewer"
    fed.clear()
    for place in CHECKED:
        prompt, vision = model_prompt(model, docs[place])
        expected = [total for total, _ in plain_scores(model.loaded.model, prompt, sizes[place][1], **vision)]
        assert responses[place].logprobs == pytest.approx(expected, abs=1e-3)
        gold = [docs[place].gold_index]
        assert gold_ranks([responses[place].logprobs], gold) == gold_ranks([expected], gold)
    hook.remove()
    assert sum(fed) == sum(sizes[place][0] + len(choice) for place in CHECKED for choice in sizes[place][1])
    branches = [Branch(prompt, choices, ending=True) for prompt, (_, choices) in zip(prompts, sizes, strict=True)]
    by_image = [sorted(part, key=lambda branch: branch.prompt) for part in (branches[1:10], branches[10:])]
    ideal = sum(len(build_tree([], part)) for part in by_image)
    assert packed == ideal  # an image, and what its rounds share of the dialogue, is fed once
    print(f"\ntokens: naive {naive}, prompt once a question {once_a_question}, fed {packed}")


def model_prompt(model, doc):
    """Token ids of a doc's prompt with its image, and what the processor makes of the image."""
    inputs = model.with_images([model.renderer.text(doc, scoring=True).rstrip()], [doc], model.max_length)
    ids = inputs.pop("input_ids")[0].tolist()
    inputs.pop("attention_mask", None)
    assert isinstance(Image.open(doc.images[0]), Image.Image) and torch.is_tensor(inputs["pixel_values"])
    return ids, inputs


def test_the_released_test_file_lacks_the_round_before(tmp_path, monkeypatch):
    """Its two histories hold 6 of 7 and 4 of 5 rounds; the strings and the options join by id."""
    if not SAMPLE.is_dir():
        pytest.skip("the authors' sample data are not here")
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cvlue" / "VD"
    folder.mkdir(parents=True)
    shutil.copy(SAMPLE / "gold.json", folder)
    (folder / "test_VD.json").write_bytes(lzma.decompress((SAMPLE / "test_VD.json.xz").read_bytes()))
    for record in json.loads((folder / "gold.json").read_text(encoding="utf-8"))["data"]:
        path = tmp_path / "cvlue" / record["image"]
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(32, 32).save(path)
    subset = prepare_subset(all_tasks()["cvlue_vd"], DataOptions(root=tmp_path))
    assert subset.report["notes"][1] == "2 of 2 rounds have an incomplete history."
    first = json.loads((subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()[0])
    beginning = "描述: 白色的柜子放着一个鱼缸，缸里游着四条鱼\n对话历史: 问题: 放鱼缸的是一个什么样的柜子？\n答案: "
    assert first["prompt"].startswith(beginning)
    assert first["prompt"].endswith("根据图片描述和对话历史用一句话回答以下问题.\n问题: 小猪玩偶是什么颜色的？\n答案:")
    assert first["prompt"].count("问题:") == 7 and len(set(first["choices"])) == 100
