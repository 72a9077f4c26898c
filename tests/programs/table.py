"""The programs of keras.io that the harness runs, and what has to be changed in each so that it needs no download."""

from __future__ import annotations

from dataclasses import dataclass

from .edits import Cut, Edit, Replace


@dataclass(frozen=True, slots=True)
class Program:
    """The edits of one program. Without `determinism` its operations are TensorFlow's usual ones."""

    edits: tuple[Edit, ...] = ()
    determinism: bool = True


def _program(*edits: Edit, determinism: bool = True) -> Program:
    return Program(edits, determinism)


PROGRAMS: dict[str, Program] = {
    "examples/vision/mnist_convnet.py": _program(),
    "examples/vision/autoencoder.py": _program(),
    "examples/vision/knowledge_distillation.py": _program(),
    "examples/vision/mixup.py": _program(Replace(r"2000", "64")),
    "examples/vision/cct.py": _program(),
    "examples/vision/convmixer.py": _program(Replace(r"depth=8", "depth=2"), Cut(r"^idx = 26")),
    "examples/vision/eanet.py": _program(Replace(r"^(num_transformer_blocks) = 8", r"\1 = 2")),
    "examples/vision/involution.py": _program(),
    "examples/vision/siamese_contrastive.py": _program(Replace(r"30000", "96")),
    "examples/vision/metric_learning.py": _program(
        Replace(r"self\.num_batches", "self.batches_wanted"),
        Replace(r"randint\(0, 50000", "randint(0, 192"),
        Replace(r"num_batches=1000", "num_batches=4"),
    ),
    "examples/vision/image_classification_with_vision_transformer.py": _program(
        Replace(r"^(transformer_layers) = 8", r"\1 = 2"), Replace(r"^    2048,", "    64,")
    ),
    "examples/vision/mlp_image_classification.py": _program(Replace(r"^num_blocks = 4", "num_blocks = 2")),
    "examples/vision/perceiver_image_classification.py": _program(
        Replace(r"^(num_transformer_blocks) = 4", r"\1 = 1"), Replace(r"^(batch_size) = 64", r"\1 = 16")
    ),
    "examples/vision/swin_transformers.py": _program(),
    "examples/vision/vit_small_ds.py": _program(
        Replace(r"^(BATCH_SIZE) = 256", r"\1 = 64"), Replace(r"^(TRANSFORMER_LAYERS) = 8", r"\1 = 2")
    ),
    "examples/vision/token_learner.py": _program(Replace(r"^(BATCH_SIZE) = 256", r"\1 = 64")),
    "examples/vision/consistency_training.py": _program(),
    "examples/vision/attention_mil_classification.py": _program(
        Replace(r"^BAG_COUNT = 1000", "BAG_COUNT = 32"), Replace(r"^VAL_BAG_COUNT = 300", "VAL_BAG_COUNT = 16")
    ),
    "examples/vision/semantic_image_clustering.py": _program(
        Replace(r"^batch_size = 500", "batch_size = 64"), Replace(r"batch_size=512", "batch_size=64")
    ),
    "examples/vision/conv_lstm.py": _program(
        Replace(r"np\.load\(fpath\)", "synthetic.moving_digits()"),
        Replace(r"^fpath = keras\.utils\.get_file\(", "recording.nothing("),
    ),
    "examples/generative/vae.py": _program(Cut(r"^## Display a grid")),
    "examples/generative/vq_vae.py": _program(Cut(r"^# Create a mini sampler")),
    "examples/generative/wgan_gp.py": _program(
        Replace(r"^BATCH_SIZE = 512", "BATCH_SIZE = 32"),
        Replace(r"\(train_images - 127", "(train_images[:64] - 127"),
        Cut(r"^Display the last"),
    ),
    "examples/generative/conditional_gan.py": _program(
        Replace(r"^from tensorflow_docs.*$", ""), Replace(r"^import imageio$", ""), Cut(r"^## Interpolating between")
    ),
    "examples/generative/lstm_character_level_text_generation.py": _program(
        Replace(r"^path = keras\.utils\.get_file\(", "path = synthetic.text_file("), Cut(r"^## Train the model")
    ),
    "examples/keras_recipes/antirectifier.py": _program(),
    "examples/keras_recipes/endpoint_layer_pattern.py": _program(),
    "examples/keras_recipes/subclassing_conv_layers.py": _program(),
    "examples/keras_recipes/sklearn_metric_callbacks.py": _program(),
    "examples/keras_recipes/trainer_pattern.py": _program(),
    "examples/keras_recipes/debugging_tips.py": _program(),
    "examples/keras_recipes/tensorflow_numpy_models.py": _program(),
    "examples/keras_recipes/reproducibility_recipes.py": _program(
        Replace(r"float\((initializer\S*\(shape=\(1, 1\)\))\)", r"float(\1[0, 0])")
    ),
    "examples/nlp/addition_rnn.py": _program(
        Replace(r"^TRAINING_SIZE = 50000", "TRAINING_SIZE = 500"), Replace(r"^epochs = 30", "epochs = 2")
    ),
    "examples/nlp/bidirectional_lstm_imdb.py": _program(),
    "examples/nlp/text_classification_with_transformer.py": _program(),
    "examples/nlp/text_classification_with_switch_transformer.py": _program(),
    "examples/nlp/lstm_seq2seq.py": _program(
        Replace(r"^fpath = keras\.utils\.get_file\(.*$", "fpath = synthetic.sentence_pairs('fra.txt', extra=True)"),
        Replace(r"^os\.system.*$", ""),
        Cut(r"^## Run inference"),
    ),
    "examples/nlp/text_classification_from_scratch.py": _program(
        Replace(r"^batch_size = 32", "synthetic.reviews(); batch_size = 8")
    ),
    "examples/structured_data/collaborative_filtering_movielens.py": _program(
        Replace(r"keras\.utils\.get_file\(", "synthetic.movielens("),
    ),
    "examples/structured_data/imbalanced_classification.py": _program(
        Replace(r"^fname = .*$", "fname = synthetic.transactions()"), Replace(r"batch_size=2048", "batch_size=64")
    ),
    "examples/structured_data/structured_data_classification_from_scratch.py": _program(
        Replace(r"pd\.read_csv\(file_url\)", "synthetic.heart()")
    ),
    "examples/structured_data/structured_data_classification_with_feature_space.py": _program(
        Replace(r"pd\.read_csv\(file_url\)", "synthetic.heart()")
    ),
    "examples/timeseries/timeseries_classification_from_scratch.py": _program(
        Replace(r"= readucr\(.*$", "= synthetic.engine_noise()")
    ),
    "examples/timeseries/timeseries_classification_transformer.py": _program(
        Replace(r"= readucr\(.*$", "= synthetic.engine_noise()"),
        Replace(r"num_transformer_blocks=4", "num_transformer_blocks=1"),
    ),
    "examples/timeseries/timeseries_anomaly_detection.py": _program(
        Replace(r"= pd\.read_csv\(", "= synthetic.daily_values("), Cut(r"^anomalous_data_indices = ")
    ),
    "guides/custom_train_step_in_tensorflow.py": _program(),
    "guides/functional_api.py": _program(Cut(r"^vgg19 = ")),
    "guides/making_new_layers_and_models_via_subclassing.py": _program(),
    "guides/writing_a_custom_training_loop_in_tensorflow.py": _program(),
    "guides/writing_your_own_callbacks.py": _program(),
    "guides/serialization_and_saving.py": _program(),
    "guides/training_with_built_in_methods.py": _program(
        Replace(r"^import torch$", ""),
        Replace(r"steps_per_epoch=100", "steps_per_epoch=2"),
        Replace(r"^class ExampleTorchDataset(?s:.*?)^## Using sample weighting", '"""'),
    ),
    "guides/intro_to_keras_for_engineers.py": _program(Cut(r"^import torch$")),
    "guides/transfer_learning.py": _program(
        Replace(r"tfds\.load\((?s:.*?)^\)", "synthetic.cats_and_dogs()"),
        Replace(r'weights="imagenet"', "weights=None"),
        Replace(r"\(150, 150", "(75, 75"),
    ),
}
