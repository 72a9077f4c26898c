"""The programs of keras.io that the harness runs, and what has to be changed in each so that it needs no download.

The patterns fit keras-team/keras-io as of commit 983729da0fa9; a newer one may need others, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from .edits import Cut, Edit, Replace


@dataclass(frozen=True, slots=True)
class Program:
    """The edits of one program. Without `determinism` its operations are TensorFlow's usual ones. One that takes long
    is given `fewer` pictures or texts.
    """

    edits: tuple[Edit, ...] = ()
    determinism: bool = True
    fewer: bool = False


def _program(*edits: Edit, determinism: bool = True, fewer: bool = False) -> Program:
    return Program(edits, determinism, fewer)


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
        Replace(r"^(transformer_layers) = 8", r"\1 = 1"), Replace(r"^    2048,", "    64,"), fewer=True
    ),
    "examples/vision/mlp_image_classification.py": _program(Replace(r"^num_blocks = 4", "num_blocks = 2")),
    "examples/vision/perceiver_image_classification.py": _program(
        Replace(r"^(num_transformer_blocks) = 4", r"\1 = 1"),
        Replace(r"^(batch_size) = 64", r"\1 = 16"),
        Replace(r"^(patch_size) = 2", r"\1 = 8"),
        Replace(r"^((latent|projection)_dim) = 256", r"\1 = 32"),
        fewer=True,
    ),
    "examples/vision/swin_transformers.py": _program(fewer=True),
    "examples/vision/token_learner.py": _program(Replace(r"^(BATCH_SIZE) = 256", r"\1 = 16"), fewer=True),
    "examples/vision/consistency_training.py": _program(
        Replace(r"^(BATCH_SIZE) = 128", r"\1 = 16"), Replace(r"^val_samples = 49500", "val_samples = 80"), fewer=True
    ),
    "examples/vision/attention_mil_classification.py": _program(
        Replace(r"^BAG_COUNT = 1000", "BAG_COUNT = 32"), Replace(r"^VAL_BAG_COUNT = 300", "VAL_BAG_COUNT = 16")
    ),
    "examples/vision/forwardforward.py": _program(
        Replace(r"num_epochs=50", "num_epochs=2"), Replace(r"\[784, 500, 500\]", "[784, 50, 50]")
    ),
    "examples/vision/gradient_centralization.py": _program(
        Replace(r"tfds\.load\((?s:.*?)^\)", "synthetic.horses()"),
        Replace(r"\(300, 300, 3\)", "(100, 100, 3)"),
        Replace(r"^batch_size = 128", "batch_size = 16"),
    ),
    "examples/vision/masked_image_modeling.py": _program(
        Replace(r"40000", "128"), Replace(r"^ENC_LAYERS = 6", "ENC_LAYERS = 1")
    ),
    "examples/vision/reptile.py": _program(
        Replace(r"tfds\.load\(", "synthetic.characters("),
        Replace(r"^meta_iters = 2000", "meta_iters = 2"),
        Cut(r"^## Visualize Results"),
    ),
    "examples/vision/conv_lstm.py": _program(
        Replace(r"np\.load\(fpath\)", "synthetic.moving_digits()"),
        Replace(r"^fpath = keras\.utils\.get_file\(", "recording.nothing("),
        Replace(r"^import imageio\n(?s:.*?)^from ipywidgets .*\n", ""),
        Replace(r"^fig, axes = plt\.subplots\(4, 5(?s:.*?)^plt\.show\(\)", ""),
        Cut(r"^## Frame Prediction Visualizations"),
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
    "examples/generative/dcgan_overriding_train_step.py": _program(
        Replace(r"^import gdown$", ""),
        Replace(r"^gdown\.download\(.*$", ""),
        Replace(r'^os\.makedirs\("celeba_gan"\)$', 'synthetic.image_folder("celeba_gan")'),
        Replace(r"^with ZipFile\((?s:.*?)extractall.*?$", ""),
        Replace(r"batch_size=32", "batch_size=8"),
    ),
    "examples/generative/pixelcnn.py": _program(
        Replace(r"^n_residual_blocks = 5", "n_residual_blocks = 2"), Cut(r"^## Demonstration")
    ),
    "examples/generative/neural_style_transfer.py": _program(
        Replace(r"= keras\.utils\.get_file\(", "= synthetic.picture_file("),
        Replace(r'weights="imagenet"', "weights=None"),
        Replace(r"^img_nrows = 400", "img_nrows = 64"),
        Replace(r"^iterations = 4000", "iterations = 3"),
        Replace(r"^    optimizer\.apply_gradients\(.*$", r"\g<0>; recording.keep(loss, combination_image)"),
        Cut(r"^After 4000 iterations"),
    ),
    "examples/audio/transformer_asr.py": _program(
        Replace(r"^keras\.utils\.get_file\(", "synthetic.speech("),
        Replace(r"= (glob\(.*\))$", r"= sorted(\1)"),
        Replace(r"^max_target_len = 200", "max_target_len = 30"),
        Replace(r"pad_len = 2754", "pad_len = 120"),
        Replace(r"bs=64", "bs=8"),
        Replace(r"num_layers_enc=4,$", "num_layers_enc=2,"),
    ),
    "examples/graph/gat_node_classification.py": _program(
        Replace(r"= keras\.utils\.get_file\(", "= synthetic.citations("), Replace(r"^NUM_HEADS = 8", "NUM_HEADS = 2")
    ),
    "examples/rl/ppo_cartpole.py": _program(
        Replace(r"^import gymnasium as gym$", "import games as gym"),
        Replace(r"^steps_per_epoch = 4000", "steps_per_epoch = 60"),
        Replace(r"^epochs = 30", "epochs = 2"),
        Replace(r"^(train_\w+_iterations) = 80", r"\1 = 3"),
        Replace(r"reward, value_t, logprobability_t\)", "reward, value_t[0], logprobability_t[0])"),
        Replace(r"store\(observation, action,", "store(observation, action[0],"),
        Replace(r"else (critic\(observation.*\))$", r"else \1[0]"),
        Replace(r"^    # Print mean return.*$", "    recording.keep(kl, return_buffer)"),
    ),
    "examples/keras_recipes/memory_efficient_embeddings.py": _program(
        Replace(r"^urlretrieve\(.*$", "synthetic.ratings()"),
        Replace(r"^ZipFile\(.*$", ""),
        Replace(r"\[:400\]", "[:20]"),
        Replace(r"\[400:1700\]", "[20:40]"),
        Replace(r"\[1700:\]", "[40:]"),
        Replace(r"len\(user_vocabulary\) // 50", "len(user_vocabulary) // 5"),
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
    "examples/nlp/text_classification_with_switch_transformer.py": _program(
        Replace(r"^batch_size = 50", "batch_size = 32")
    ),
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
    "examples/structured_data/deep_neural_decision_forests.py": _program(
        Replace(r"pd\.read_csv\(\w+, header=None, names=CSV_HEADER\)", "synthetic.census(CSV_HEADER)"),
        Replace(r"^num_trees = 25", "num_trees = 3"),
        Replace(r"^depth = 10", "depth = 4"),
    ),
    "examples/structured_data/wide_deep_cross_networks.py": _program(
        Replace(r"pd\.read_csv\(data_url, header=None\)", "synthetic.forest_cover()")
    ),
    "examples/timeseries/timeseries_traffic_forecasting.py": _program(
        Replace(r"= keras\.utils\.get_file\(", "= synthetic.roads(")
    ),
    "examples/timeseries/timeseries_weather_forecasting.py": _program(
        Replace(r"= keras\.utils\.get_file\(", "= synthetic.climate("),
        Replace(r"^past = 720", "past = 72"),
        Replace(r"^future = 72", "future = 12"),
        Replace(r"^batch_size = 256", "batch_size = 64"),
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
