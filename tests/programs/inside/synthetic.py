"""Small data sets in the form of those that programs download: the same shapes and dtypes, other contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

TRAIN, TEST = 192, 64
Split = tuple[Any, Any]


def mnist(*_: Any) -> tuple[Split, Split]:
    return _images((28, 28), 10, flat_labels=True)


fashion_mnist = mnist


def cifar10() -> tuple[Split, Split]:
    return _images((32, 32, 3), 10)


def cifar100(*_: Any, **__: Any) -> tuple[Split, Split]:
    return _images((32, 32, 3), 100)


def imdb(num_words: int = 20_000, **_: Any) -> tuple[Split, Split]:
    random = np.random.default_rng(2)

    def split(count: int) -> Split:
        reviews = np.empty(count, dtype=object)
        for index in range(count):
            reviews[index] = random.integers(1, num_words, size=random.integers(20, 120)).tolist()
        return reviews, np.arange(count) % 2

    return split(TRAIN), split(TEST)


def boston_housing(**_: Any) -> tuple[Split, Split]:
    random = np.random.default_rng(3)
    return tuple((random.normal(size=(n, 13)), random.normal(size=n) + 20) for n in (TRAIN, TEST))  # type: ignore[return-value]


def moving_digits() -> np.ndarray:
    return np.random.default_rng(4).integers(0, 256, size=(5, 20, 16, 16), dtype=np.uint8)


def cats_and_dogs() -> list[Any]:
    return [_image_dataset(count, 80, 2) for count in (48, 16, 16)]


def engine_noise() -> Split:
    random = np.random.default_rng(7)
    return random.normal(size=(TRAIN, 100)), np.where(np.arange(TRAIN) % 2, 1, -1)


def daily_values(*_: Any, **__: Any) -> Any:
    import pandas as pd

    days = pd.date_range("2014-04-01", periods=1500, freq="5min", name="timestamp")
    return pd.DataFrame({"value": np.sin(np.arange(1500) / 10) * 20 + 40}, index=days)


def heart() -> Any:
    import pandas as pd

    random = np.random.default_rng(8)
    ranges = {"age": (30, 70), "sex": (0, 2), "cp": (0, 5), "trestbps": (90, 200), "chol": (120, 400), "fbs": (0, 2)}
    ranges |= {"restecg": (0, 3), "thalach": (70, 200), "exang": (0, 2), "slope": (1, 4), "ca": (0, 4)}
    columns: dict[str, Any] = {name: random.integers(low, high, size=300) for name, (low, high) in ranges.items()}
    columns["oldpeak"] = random.random(300)
    columns["thal"] = random.choice(["fixed", "normal", "reversible"], size=300)
    columns["target"] = random.integers(0, 2, size=300)
    return pd.DataFrame(columns)


def transactions() -> str:
    """A file of card payments: a header, thirty numbers, and whether it was fraud."""
    random = np.random.default_rng(9)
    rows = ["header"] + [
        ",".join(map(str, [*random.normal(size=30).round(3), f'"{i % 20 == 0:d}"'])) for i in range(400)
    ]
    Path("transactions.csv").write_text("\n".join(rows), encoding="utf-8")
    return "transactions.csv"


def movielens(*_: Any, **__: Any) -> str:
    """The folder of a zip file that was unpacked already."""
    random = np.random.default_rng(10)
    folder = Path("ml-latest-small")
    folder.mkdir()
    rows = [f"{i % 20},{random.integers(1, 60)},{random.integers(1, 11) / 2},0" for i in range(400)]
    (folder / "ratings.csv").write_text("\n".join(["userId,movieId,rating,timestamp", *rows]), encoding="utf-8")
    films = [f"{i},title {i},Comedy|Drama" for i in range(60)]
    (folder / "movies.csv").write_text("\n".join(["movieId,title,genres", *films]), encoding="utf-8")
    return str(Path("ml-latest-small.zip").absolute())


def reviews() -> None:
    """The folders of the film reviews."""
    for number, kind in enumerate(("train/pos", "train/neg", "test/pos", "test/neg")):
        folder = Path("aclImdb") / kind
        folder.mkdir(parents=True)
        for index in range(24):
            (folder / f"{index}.txt").write_text(words(60, seed=number * 100 + index), encoding="utf-8")


def text_file(*_: Any, **__: Any) -> str:
    Path("text.txt").write_text(words(600), encoding="utf-8")
    return "text.txt"


def sentence_pairs(name: str, *, extra: bool = False) -> str:
    """A file of sentences and their translations, a pair a line."""
    more = "\tsource" if extra else ""
    lines = [f"{words(5, seed=i)}\t{words(6, seed=1000 + i)}{more}" for i in range(150)]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(Path(name).absolute())


def words(count: int, seed: int = 6, vocabulary: int = 300) -> str:
    """A text of made-up words."""
    numbers = np.random.default_rng(seed).integers(0, vocabulary, size=count)
    letters = "abcdefghij"
    return " ".join("".join(letters[int(digit)] for digit in str(number)) for number in numbers)


def _image_dataset(count: int, size: int, classes: int) -> Any:
    """`tfds.load(..., as_supervised=True)` of images."""
    import tensorflow as tf

    images = np.random.default_rng(5).integers(0, 256, size=(count, size, size, 3), dtype=np.uint8)
    return tf.data.Dataset.from_tensor_slices((images, np.arange(count, dtype=np.int64) % classes))


def _images(shape: tuple[int, ...], classes: int, *, flat_labels: bool = False) -> tuple[Split, Split]:
    random = np.random.default_rng(1)

    def split(count: int) -> Split:
        labels = (np.arange(count) % classes).astype("uint8" if flat_labels else "int64")
        return random.integers(0, 256, size=(count, *shape), dtype=np.uint8), labels if flat_labels else labels[:, None]

    return split(TRAIN), split(TEST)
