"""Hugging Face's TensorFlow models with small configurations, and generation with past keys and values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf
import transformers

SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
}
SHORT = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_ctx": 64}
PAIR = {
    "vocab_size": 99,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "max_position_embeddings": 64,
}
IMAGE = {**SMALL, "image_size": 32, "patch_size": 8}
CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "TFBertModel": ("BertConfig", SMALL),
    "TFBertForSequenceClassification": ("BertConfig", SMALL),
    "TFBertForMaskedLM": ("BertConfig", SMALL),
    "TFBertForQuestionAnswering": ("BertConfig", SMALL),
    "TFRobertaModel": ("RobertaConfig", SMALL),
    "TFXLMRobertaForTokenClassification": ("XLMRobertaConfig", SMALL),
    "TFCamembertModel": ("CamembertConfig", SMALL),
    "TFElectraModel": ("ElectraConfig", {**SMALL, "embedding_size": 16}),
    "TFAlbertModel": ("AlbertConfig", {**SMALL, "embedding_size": 16}),
    "TFDistilBertModel": (
        "DistilBertConfig",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37},
    ),
    "TFMobileBertModel": ("MobileBertConfig", {**SMALL, "embedding_size": 32, "intra_bottleneck_size": 32}),
    "TFMPNetModel": ("MPNetConfig", SMALL),
    "TFConvBertModel": ("ConvBertConfig", {**SMALL, "embedding_size": 32}),
    "TFRemBertModel": ("RemBertConfig", {**SMALL, "input_embedding_size": 16, "output_embedding_size": 16}),
    "TFRoFormerModel": ("RoFormerConfig", {**SMALL, "embedding_size": 32}),
    "TFDebertaModel": ("DebertaConfig", SMALL),
    "TFDebertaV2Model": ("DebertaV2Config", SMALL),
    "TFEsmModel": ("EsmConfig", {**SMALL, "pad_token_id": 1}),
    "TFLayoutLMModel": ("LayoutLMConfig", SMALL),
    "TFFunnelModel": (
        "FunnelConfig",
        {"vocab_size": 99, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8},
    ),
    "TFLongformerModel": ("LongformerConfig", {**SMALL, "attention_window": 8}),
    "TFXLNetModel": ("XLNetConfig", {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 37}),
    "TFGPT2LMHeadModel": ("GPT2Config", SHORT),
    "TFOpenAIGPTModel": ("OpenAIGPTConfig", SHORT),
    "TFCTRLModel": ("CTRLConfig", {**SHORT, "dff": 37}),
    "TFGPTJModel": ("GPTJConfig", {**SHORT, "rotary_dim": 4}),
    "TFOPTModel": ("OPTConfig", {**SMALL, "ffn_dim": 37, "word_embed_proj_dim": 32}),
    "TFT5ForConditionalGeneration": (
        "T5Config",
        {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4},
    ),
    "TFBartModel": ("BartConfig", PAIR),
    "TFPegasusModel": ("PegasusConfig", PAIR),
    "TFMarianModel": ("MarianConfig", {**PAIR, "pad_token_id": 1}),
    "TFMBartModel": ("MBartConfig", PAIR),
    "TFBlenderbotModel": ("BlenderbotConfig", PAIR),
    "TFViTModel": ("ViTConfig", IMAGE),
    "TFDeiTModel": ("DeiTConfig", IMAGE),
    "TFData2VecVisionModel": ("Data2VecVisionConfig", IMAGE),
    "TFSwinModel": (
        "SwinConfig",
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
    ),
    "TFConvNextModel": ("ConvNextConfig", {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}),
    "TFResNetModel": ("ResNetConfig", {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}),
    "TFRegNetModel": ("RegNetConfig", {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}),
    "TFSegformerModel": ("SegformerConfig", {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}),
    "TFMobileViTModel": ("MobileViTConfig", {"image_size": 64}),
    "TFWav2Vec2Model": ("Wav2Vec2Config", {**SMALL, "conv_dim": [16] * 7, "num_conv_pos_embeddings": 16}),
    "TFHubertModel": ("HubertConfig", {**SMALL, "conv_dim": [16] * 7, "num_conv_pos_embeddings": 16}),
    "TFWhisperModel": ("WhisperConfig", {**PAIR, "num_mel_bins": 16, "max_source_positions": 30}),
}


def _model(name: str, directory: Path) -> Any:
    tf.keras.utils.set_random_seed(3)
    kind, options = CONFIGURATIONS[name]
    model = getattr(transformers, name)(getattr(transformers, kind)(**options))
    model.build_in_name_scope()
    return model


def _generation(
    name: str, kind: str, options: dict[str, Any], directory: Path, *, batch: int | None = None, **wishes: Any
) -> None:
    tf.keras.utils.set_random_seed(3)
    tokens = {"eos_token_id": None, "pad_token_id": 0, "bos_token_id": 1, "decoder_start_token_id": 0}
    model = getattr(transformers, name)(getattr(transformers, kind)(**options, **tokens))

    class Generation(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        @tf.function(input_signature=[tf.TensorSpec([batch, 6], tf.int32, "input_ids")])
        def generate(self, input_ids: Any) -> Any:
            mask = tf.ones_like(input_ids)
            sequences = model.generate(input_ids=input_ids, attention_mask=mask, max_new_tokens=4, **wishes)
            return {"sequences": sequences}

    made = Generation()
    tf.saved_model.save(made, str(directory), signatures={"serving_default": made.generate})


def _step(directory: Path) -> None:
    """One step of generation whose caller keeps the past keys and values."""
    tf.keras.utils.set_random_seed(3)
    model = transformers.TFGPT2LMHeadModel(transformers.GPT2Config(**SHORT))
    heads, width = SHORT["n_head"], SHORT["n_embd"] // SHORT["n_head"]

    class Step(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 1], tf.int32, "input_ids"),
                tf.TensorSpec([SHORT["n_layer"], 2, None, heads, None, width], tf.float32, "past"),
            ]
        )
        def step(self, input_ids: Any, past: Any) -> Any:
            seen = tf.unstack(past, axis=0)
            answer = model(input_ids=input_ids, past_key_values=seen, use_cache=True, training=False)
            return {"logits": answer.logits, "past": tf.stack(answer.past_key_values)}

    made = Step()
    tf.saved_model.save(made, str(directory), signatures={"serving_default": made.step})


MODELS: dict[str, Callable[[Path], Any]] = {
    **{f"Hugging Face:{name}": partial(_model, name) for name in CONFIGURATIONS},
    "Hugging Face:GPT-2 generate": partial(_generation, "TFGPT2LMHeadModel", "GPT2Config", SHORT),
    "Hugging Face:GPT-2 generate with beams": partial(
        _generation, "TFGPT2LMHeadModel", "GPT2Config", SHORT, batch=2, num_beams=2
    ),
    "Hugging Face:GPT-2 step with past": _step,
    "Hugging Face:T5 generate": partial(
        _generation, "TFT5ForConditionalGeneration", *CONFIGURATIONS["TFT5ForConditionalGeneration"]
    ),
}
