"""Configurations and processors of tiny image-text-to-text models, one function a family.

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

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cultureval.runtime.patches.transformers import VIDEOS, processor_class, without_videos
from cultureval.samples.tiny_models.text_parts import IMAGE, VISION_END, VISION_START, text_config

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Built = tuple[Any, tuple[Any, ...]]  # a configuration, and the other parts of the folder


def _llava(tokenizer: "PreTrainedTokenizerFast", image_size: int, patch_size: int, **sizes: int) -> Built:
    from transformers import CLIPImageProcessorPil, CLIPVisionConfig, LlavaConfig, LlavaProcessor

    vision = CLIPVisionConfig(**_tower(image_size, patch_size), projection_dim=32)
    config = LlavaConfig(
        vision_config=vision,
        text_config=text_config("llama", tokenizer, **sizes),
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=(image_size // patch_size) ** 2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
    )
    size = {"height": image_size, "width": image_size}
    images = CLIPImageProcessorPil(size={"shortest_edge": image_size}, crop_size=size)
    processor = LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=patch_size,
        vision_feature_select_strategy="default",
        chat_template=tokenizer.chat_template,
        image_token=IMAGE,
        num_additional_image_tokens=1,
    )
    return config, (processor,)


def _qwen_vl(model_type: str, text: str, section: list[int]) -> Callable[..., Built]:
    """A builder for one generation of Qwen-VL: model type, text model and split of the rotary dimensions."""

    def build(tokenizer: "PreTrainedTokenizerFast", image_size: int, patch_size: int, **sizes: int) -> Built:
        from transformers import AutoConfig, Qwen2VLImageProcessorPil

        rope = {"rope_type": "default", "mrope_section": section, "rope_theta": 10000.0}
        inner = text_config(text, tokenizer, **sizes).to_dict()
        inner |= {"model_type": f"{model_type}_text", "rope_parameters": rope}
        tower = _tower(image_size, patch_size)
        tower |= {"depth": 2, "num_heads": 2, "out_hidden_size": inner["hidden_size"]}
        if model_type == "qwen2_vl":
            tower |= {"embed_dim": 32, "hidden_size": inner["hidden_size"], "mlp_ratio": 2}
        if model_type == "qwen2_5_vl":
            tower |= {"window_size": 4 * patch_size, "fullatt_block_indexes": [1]}
        if model_type == "qwen3_vl":
            rope["mrope_interleaved"] = True
            tower |= {"deepstack_visual_indexes": [0, 1], "num_position_embeddings": 64}
        for name in ("num_hidden_layers", "num_attention_heads", "image_size"):
            del tower[name]
        config = AutoConfig.for_model(
            model_type,
            text_config=inner,
            vision_config=tower,
            image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
            vision_start_token_id=tokenizer.convert_tokens_to_ids(VISION_START),
            vision_end_token_id=tokenizer.convert_tokens_to_ids(VISION_END),
        )
        size = {"shortest_edge": 16 * patch_size**2, "longest_edge": 256 * patch_size**2}
        images = Qwen2VLImageProcessorPil(patch_size=patch_size, size=size)
        return config, (_reader(config, images, _named(tokenizer)),)

    return build


def _gemma3(tokenizer: "PreTrainedTokenizerFast", image_size: int, patch_size: int, **sizes: int) -> Built:
    from transformers import AutoConfig, Gemma3ImageProcessorPil, Gemma3Processor, SiglipVisionConfig

    tokens = (image_size // patch_size) ** 2 // 4  # patches are averaged two by two
    tokenizer = _named(tokenizer, boi_token=VISION_START, eoi_token=VISION_END)
    config = AutoConfig.for_model(
        "gemma3",
        vision_config=SiglipVisionConfig(**_tower(image_size, patch_size), vision_use_head=False),
        text_config=text_config("gemma3", tokenizer, **sizes),
        mm_tokens_per_image=tokens,
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        boi_token_index=tokenizer.convert_tokens_to_ids(VISION_START),
        eoi_token_index=tokenizer.convert_tokens_to_ids(VISION_END),
    )
    size = {"height": image_size, "width": image_size}
    processor = Gemma3Processor(
        image_processor=Gemma3ImageProcessorPil(size=size),
        tokenizer=tokenizer,
        chat_template=tokenizer.chat_template,
        image_seq_length=tokens,
    )
    return config, (processor,)


def _internvl(tokenizer: "PreTrainedTokenizerFast", image_size: int, patch_size: int, **sizes: int) -> Built:
    from transformers import AutoConfig, GotOcr2ImageProcessorPil

    names = {"start_image_token": VISION_START, "end_image_token": VISION_END, "context_image_token": IMAGE}
    tokenizer = _named(tokenizer, **names, video_token="<video>")
    config = AutoConfig.for_model(
        "internvl",
        vision_config=_tower(image_size, patch_size),
        text_config=text_config("qwen2", tokenizer, **sizes),
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=(image_size // patch_size) ** 2 // 4,
    )
    size = {"height": image_size, "width": image_size}
    images = GotOcr2ImageProcessorPil(size=size, crop_to_patches=True, max_patches=4)
    return config, (_reader(config, images, tokenizer, image_seq_length=config.image_seq_length),)


def _idefics(model_type: str) -> Callable[..., Built]:
    """A builder for Idefics3 or SmolVLM."""

    def build(tokenizer: "PreTrainedTokenizerFast", image_size: int, patch_size: int, **sizes: int) -> Built:
        from transformers import AutoConfig, Idefics3ImageProcessorPil, SmolVLMImageProcessorPil

        edges = {"size": {"longest_edge": 2 * image_size}, "max_image_size": {"longest_edge": image_size}}
        kind = Idefics3ImageProcessorPil if model_type == "idefics3" else SmolVLMImageProcessorPil
        fake, end = "<fake_token_around_image>", "<end_of_utterance>"
        tokenizer = _named(tokenizer, fake_image_token=fake, end_of_utterance_token=end)
        config = AutoConfig.for_model(
            model_type,
            vision_config=_tower(image_size, patch_size),
            text_config=text_config("llama", tokenizer, **sizes),
            image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
            pad_token_id=tokenizer.pad_token_id,
        )
        tokens = (image_size // patch_size) ** 2 // config.scale_factor**2
        return config, (_reader(config, kind(**edges), tokenizer, image_seq_len=tokens),)

    return build


def _tower(image_size: int, patch_size: int) -> dict[str, Any]:
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": image_size,
        "patch_size": patch_size,
        "initializer_range": 0.2,
    }


def _reader(config: Any, images: Any, tokenizer: "PreTrainedTokenizerFast", **settings: Any) -> Any:
    """The family's own processor, without videos."""
    kind = processor_class(config.model_type)
    videos = {VIDEOS: None} if VIDEOS in kind.get_attributes() else {}
    return without_videos(kind)(images, tokenizer, chat_template=tokenizer.chat_template, **videos, **settings)


def _named(tokenizer: "PreTrainedTokenizerFast", **names: str) -> "PreTrainedTokenizerFast":
    """A tokenizer that knows the tokens that a family's processor asks it for."""
    from transformers import PreTrainedTokenizerFast

    settings = {name: getattr(tokenizer, name) for name in ("bos_token", "eos_token", "pad_token")}
    names = {"image_token": IMAGE, **names}
    named = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, extra_special_tokens=names, **settings
    )
    named.chat_template = tokenizer.chat_template
    return named


BUILDERS: dict[str, Callable[..., Built]] = {
    "llava": _llava,
    "qwen2_vl": _qwen_vl("qwen2_vl", "qwen2", [2, 3, 3]),
    "qwen2_5_vl": _qwen_vl("qwen2_5_vl", "qwen2", [2, 3, 3]),
    "qwen3_vl": _qwen_vl("qwen3_vl", "qwen3", [4, 2, 2]),
    "gemma3_vision": _gemma3,
    "internvl": _internvl,
    "idefics3": _idefics("idefics3"),
    "smolvlm": _idefics("smolvlm"),
}
