"""KerasHub: backbones of every kind with small configurations, and generation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras
import keras_hub
import tensorflow as tf

TEXT = {"vocabulary_size": 97, "num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
GROUPED = {
    "vocabulary_size": 97,
    "num_layers": 2,
    "num_query_heads": 4,
    "num_key_value_heads": 2,
    "hidden_dim": 32,
    "intermediate_dim": 64,
}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "BertBackbone": TEXT,
    "RobertaBackbone": TEXT,
    "XLMRobertaBackbone": TEXT,
    "DistilBertBackbone": TEXT,
    "DebertaV3Backbone": TEXT,
    "AlbertBackbone": {**TEXT, "embedding_dim": 8},
    "ElectraBackbone": {
        "vocab_size": 97,
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 16,
        "embedding_dim": 8,
        "intermediate_dim": 32,
    },
    "FNetBackbone": {key: value for key, value in TEXT.items() if key != "num_heads"},
    "GPT2Backbone": TEXT,
    "OPTBackbone": TEXT,
    "BloomBackbone": TEXT,
    "GPTNeoXBackbone": TEXT,
    "BartBackbone": TEXT,
    "T5Backbone": TEXT,
    "FalconBackbone": {
        "vocabulary_size": 97,
        "num_layers": 2,
        "num_attention_heads": 2,
        "hidden_dim": 16,
        "intermediate_dim": 32,
    },
    "LlamaBackbone": GROUPED,
    "Llama3Backbone": GROUPED,
    "MistralBackbone": GROUPED,
    "QwenBackbone": GROUPED,
    "Phi3Backbone": GROUPED,
    "GemmaBackbone": {**GROUPED, "head_dim": 8},
    "ViTBackbone": {
        "image_shape": (32, 32, 3),
        "patch_size": 8,
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 16,
        "mlp_dim": 32,
    },
    "ResNetBackbone": {
        "input_conv_filters": [64],
        "input_conv_kernel_sizes": [7],
        "stackwise_num_filters": [64, 64],
        "stackwise_num_blocks": [1, 1],
        "stackwise_num_strides": [1, 2],
        "block_type": "bottleneck_block",
        "image_shape": (32, 32, 3),
    },
    "VGGBackbone": {"stackwise_num_repeats": [1, 1], "stackwise_num_filters": [8, 16], "image_shape": (32, 32, 3)},
    "DenseNetBackbone": {"stackwise_num_repeats": [2, 2], "image_shape": (64, 64, 3)},
    "WhisperBackbone": TEXT,
}


def _backbone(name: str, directory: Path) -> Any:
    keras.utils.set_random_seed(3)
    return getattr(keras_hub.models, name)(**CONFIGURATIONS[name])


def _generation(directory: Path) -> None:
    keras.utils.set_random_seed(3)
    backbone = keras_hub.models.GPT2Backbone(**TEXT, max_sequence_length=12)
    model = keras_hub.models.GPT2CausalLM(backbone=backbone)
    model.sampler = keras_hub.samplers.GreedySampler()

    class Generation(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        @tf.function(input_signature=[tf.TensorSpec([None, 12], tf.int32), tf.TensorSpec([None, 12], tf.bool)])
        def generate(self, token_ids: Any, padding_mask: Any) -> Any:
            mask = tf.concat([tf.ones_like(padding_mask[:, :4]), tf.zeros_like(padding_mask[:, 4:])], 1)
            inputs = {"token_ids": token_ids, "padding_mask": mask}
            return {"token_ids": model.generate_step(inputs, stop_token_ids=None)["token_ids"]}

    made = Generation()
    tf.saved_model.save(made, str(directory), signatures={"serving_default": made.generate})


MODELS: dict[str, Callable[[Path], Any]] = {
    **{f"KerasHub:{name}": partial(_backbone, name) for name in CONFIGURATIONS},
    "KerasHub:GPT-2 generate": _generation,
}
