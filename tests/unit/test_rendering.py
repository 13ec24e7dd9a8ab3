"""Prompts as chat templates of many kinds write them: no template may lose a question without a word."""

import base64
import copy
import io

import pytest
from lighteval.tasks.requests import Doc
from PIL import Image
from PIL.ExifTags import Base
from tiny_models import picture, vision_processor

from cultureval.models.generation.rendering import Renderer, open_images
from cultureval.models.settings import HFModelSettings
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.data_urls import data_url

QUESTION = "ما عاصمة المغرب؟"
OF_PARTS = (
    "{% for turn in messages %}{{ turn['role'] }}: {% for part in turn['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}|{% endfor %}"
)
OF_TEXT = "{% for turn in messages %}{{ turn['role'] }}: {{ turn['content'] }}|{% endfor %}"
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system turns') }}{% endif %}" + OF_TEXT


def renderer(template, **settings):
    processor = copy.deepcopy(vision_processor("llava"))
    processor.chat_template = template
    return Renderer(processor.tokenizer, processor, HFModelSettings(model_name="org/model", **settings))


def doc(**fields):
    return Doc(query=QUESTION, choices=["أ"], gold_index=0, id="0", task_name="t", **fields)


@pytest.mark.parametrize("template", [OF_PARTS, OF_TEXT])
def test_a_question_without_images_is_written_whatever_form_the_template_takes(template):
    example = doc()
    asked = doc(fewshot_samples=[example])
    prompt = renderer(template, system_prompt="أجب").text(asked)
    assert prompt == f"system: أجب|user: {QUESTION}|assistant: أ|user: {QUESTION}|"


def test_images_need_a_template_of_parts():
    assert renderer(OF_PARTS).text(doc(images=[picture(8, 8)])) == f"user: <image>{QUESTION}|"
    with pytest.raises(CulturevalError, match=r"org/model does not support images.*chat_template: off"):
        renderer(OF_TEXT).text(doc(images=[picture(8, 8)]))


def test_a_template_that_refuses_a_turn_is_one_error_that_says_why():
    assert QUESTION in renderer(NO_SYSTEM).text(doc())
    with pytest.raises(CulturevalError, match=r"org/model rejects a prompt of t: no system turns.*system_prompt"):
        renderer(NO_SYSTEM, system_prompt="أجب").text(doc())


@pytest.mark.parametrize(("placement", "shown"), [("first", "<image>\n%s"), ("last", "%s\n<image>")])
def test_without_a_template_every_image_stands_with_its_own_question(placement, shown):
    pictures = [picture(8, 8, seed) for seed in range(4)]
    examples = [doc(images=pictures[:1]), doc(images=pictures[1:2])]
    examples[1].query = "قبل <image> بعد"
    asked = doc(images=pictures[2:], fewshot_samples=examples, instruction="أجب: ")
    asked.query = "أجب: <image> أم <image>"
    examples[0].query, examples[0].instruction = f"أجب: {QUESTION}", "أجب: "
    prompt = renderer(OF_PARTS, chat_template="off", image_placement=placement).text(asked)
    assert prompt == "\n\n".join(["أجب: ", f"{shown % QUESTION} أ", "قبل <image> بعد أ", "<image> أم <image>"])


def test_a_photograph_is_shown_as_the_camera_was_held(tmp_path):
    path, photo = tmp_path / "photo.jpg", picture(40, 20)
    exif = photo.getexif()
    exif[Base.Orientation] = 6
    photo.save(path, exif=exif)
    (shown,) = open_images(doc(images=[str(path)]), HFModelSettings(model_name="org/model"))
    assert shown.size == (20, 40)
    small = Image.open(io.BytesIO(base64.b64decode(data_url(path, max_side=10).partition(",")[2])))
    assert small.size == (5, 10)
    sent = Image.open(io.BytesIO(base64.b64decode(data_url(path).partition(",")[2])))
    assert (sent.format, sent.size, dict(sent.getexif())) == ("PNG", (20, 40), {}), "a server may pass over the tag"
