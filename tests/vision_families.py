"""Configurations and processors of tiny image-text-to-text models for the tests, one function a family.

Video processors need torchvision; processors are built without them.

| family | images as | positions and attention |
|---|---|---|
| llava | a fixed number of tokens | as text |
| qwen2_vl, qwen2_5_vl | a number that depends on the image's size | M-RoPE |
| qwen3_vl | the same, and features added to the first layers' hidden states (DeepStack) | interleaved M-RoPE |
| gemma3_vision | a fixed number, also cut into crops if asked | both ways within an image; sliding windows |
| internvl | tiles of a fixed number, pixels shuffled into channels | as text |
| idefics3, smolvlm | splits of a fixed number and the full image | as text |
"""

import transformers as hf

from cultureval.runtime.patches.transformers import VIDEOS, processor_class, without_videos
from cultureval.samples.tiny_models.language_models import (
    IMAGE_SIZE,
    PATCH_SIZE,
    build_tiny_vision_lm,
    tower,
    write_vision_lm,
)
from cultureval.samples.tiny_models.text_parts import IMAGE, VISION_END, VISION_START, text_config, train_tokenizer

TOKENS = (IMAGE_SIZE // PATCH_SIZE) ** 2  # patches of an image
SIZE = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}


def build_vision_lm(folder, family, chat_template=True, **sizes):
    """Write a model of a family with random weights and its processor into a folder, as `build_tiny_vision_lm`."""
    if family == "llava":
        return build_tiny_vision_lm(folder, chat_template, **sizes)
    tokenizer = train_tokenizer(chat_template=chat_template, image_slot=image_slot(family))
    return write_vision_lm(folder, *BUILDERS[family](tokenizer, **sizes))


def image_slot(family):
    """The placeholder of an image in a prompt of a family."""
    if family == "gemma3_vision":
        return VISION_START  # its processor inserts the image's tokens after this start token
    return VISION_START + IMAGE + VISION_END if family.startswith("qwen") else IMAGE


def _qwen_vl(model_type, text, section):
    """A builder for one generation of Qwen-VL: model type, text model and split of the rotary dimensions."""

    def build(tokenizer, **sizes):
        rope = {"rope_type": "default", "mrope_section": section, "rope_theta": 10000.0}
        inner = text_config(text, tokenizer, **sizes).to_dict()
        inner |= {"model_type": f"{model_type}_text", "rope_parameters": rope}
        vision = tower(IMAGE_SIZE, PATCH_SIZE)
        vision |= {"depth": 2, "num_heads": 2, "out_hidden_size": inner["hidden_size"]}
        if model_type == "qwen2_vl":
            vision |= {"embed_dim": 32, "hidden_size": inner["hidden_size"], "mlp_ratio": 2}
        if model_type == "qwen2_5_vl":
            vision |= {"window_size": 4 * PATCH_SIZE, "fullatt_block_indexes": [1]}
        if model_type == "qwen3_vl":
            rope["mrope_interleaved"] = True
            vision |= {"deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64}
        for name in ("num_hidden_layers", "num_attention_heads", "image_size"):
            del vision[name]
        config = hf.AutoConfig.for_model(
            model_type,
            text_config=inner,
            vision_config=vision,
            image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
            vision_start_token_id=tokenizer.convert_tokens_to_ids(VISION_START),
            vision_end_token_id=tokenizer.convert_tokens_to_ids(VISION_END),
        )
        size = {"shortest_edge": 16 * PATCH_SIZE**2, "longest_edge": 256 * PATCH_SIZE**2}
        images = hf.Qwen2VLImageProcessorPil(patch_size=PATCH_SIZE, size=size)
        return config, _reader(config, images, _named(tokenizer))

    return build


def _gemma3(tokenizer, **sizes):
    tokens = TOKENS // 4  # patches are averaged two by two
    tokenizer = _named(tokenizer, boi_token=VISION_START, eoi_token=VISION_END)
    config = hf.AutoConfig.for_model(
        "gemma3",
        vision_config=hf.SiglipVisionConfig(**tower(IMAGE_SIZE, PATCH_SIZE), vision_use_head=False),
        text_config=text_config("gemma3", tokenizer, **sizes),
        mm_tokens_per_image=tokens,
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        boi_token_index=tokenizer.convert_tokens_to_ids(VISION_START),
        eoi_token_index=tokenizer.convert_tokens_to_ids(VISION_END),
    )
    processor = hf.Gemma3Processor(
        image_processor=hf.Gemma3ImageProcessorPil(size=SIZE),
        tokenizer=tokenizer,
        chat_template=tokenizer.chat_template,
        image_seq_length=tokens,
    )
    return config, processor


def _internvl(tokenizer, **sizes):
    names = {"start_image_token": VISION_START, "end_image_token": VISION_END, "context_image_token": IMAGE}
    tokenizer = _named(tokenizer, **names, video_token="<video>")
    config = hf.AutoConfig.for_model(
        "internvl",
        vision_config=tower(IMAGE_SIZE, PATCH_SIZE),
        text_config=text_config("qwen2", tokenizer, **sizes),
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=TOKENS // 4,
    )
    images = hf.GotOcr2ImageProcessorPil(size=SIZE, crop_to_patches=True, max_patches=4)
    return config, _reader(config, images, tokenizer, image_seq_length=config.image_seq_length)


def _idefics(model_type):
    """A builder for Idefics3 or SmolVLM."""

    def build(tokenizer, **sizes):
        edges = {"size": {"longest_edge": 2 * IMAGE_SIZE}, "max_image_size": {"longest_edge": IMAGE_SIZE}}
        kind = hf.Idefics3ImageProcessorPil if model_type == "idefics3" else hf.SmolVLMImageProcessorPil
        fake, end = "<fake_token_around_image>", "<end_of_utterance>"
        tokenizer = _named(tokenizer, fake_image_token=fake, end_of_utterance_token=end)
        config = hf.AutoConfig.for_model(
            model_type,
            vision_config=tower(IMAGE_SIZE, PATCH_SIZE),
            text_config=text_config("llama", tokenizer, **sizes),
            image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
            pad_token_id=tokenizer.pad_token_id,
        )
        tokens = TOKENS // config.scale_factor**2
        return config, _reader(config, kind(**edges), tokenizer, image_seq_len=tokens)

    return build


def _reader(config, images, tokenizer, **settings):
    """The family's own processor, without videos."""
    kind = processor_class(config.model_type)
    videos = {VIDEOS: None} if VIDEOS in kind.get_attributes() else {}
    return without_videos(kind)(images, tokenizer, chat_template=tokenizer.chat_template, **videos, **settings)


def _named(tokenizer, **names):
    """A tokenizer that knows the tokens that a family's processor asks it for."""
    settings = {name: getattr(tokenizer, name) for name in ("bos_token", "eos_token", "pad_token")}
    names = {"image_token": IMAGE, **names}
    named = hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, extra_special_tokens=names, **settings
    )
    named.chat_template = tokenizer.chat_template
    return named


BUILDERS = {
    "qwen2_vl": _qwen_vl("qwen2_vl", "qwen2", [2, 3, 3]),
    "qwen2_5_vl": _qwen_vl("qwen2_5_vl", "qwen2", [2, 3, 3]),
    "qwen3_vl": _qwen_vl("qwen3_vl", "qwen3", [4, 2, 2]),
    "gemma3_vision": _gemma3,
    "internvl": _internvl,
    "idefics3": _idefics("idefics3"),
    "smolvlm": _idefics("smolvlm"),
}
VISION = ("llava", *BUILDERS)
