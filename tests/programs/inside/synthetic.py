"""Small data sets in the form of those that programs download: the same shapes and dtypes, other contents."""

from __future__ import annotations

import wave
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

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


def image_folder(name: str, count: int = 16) -> None:
    """A folder of small pictures."""
    import keras

    folder = Path(name) / "pictures"
    folder.mkdir(parents=True)
    for index, image in enumerate(_pixels(count, 64)):
        keras.utils.save_img(folder / f"{index:03}.png", image)


def picture_file(name: str, *_: Any) -> str:
    """One picture, another for each name."""
    import keras

    keras.utils.save_img(name, _pixels(1, 64, seed=sum(name.encode()))[0])
    return name


def characters(*_: Any, **__: Any) -> Any:
    """`tfds.load` of drawings of ten characters, twenty-one of each."""
    return _image_dataset(210, 32, 10)


def horses(*_: Any, **__: Any) -> tuple[Any, Any]:
    """`tfds.load(..., with_info=True)`: two sets of pictures, and what is known about them."""
    splits = {name: SimpleNamespace(num_examples=count) for name, count in (("train", 48), ("test", 16))}
    known = SimpleNamespace(features={"image": SimpleNamespace(shape=(100, 100, 3))}, splits=splits)
    return tuple(_image_dataset(each.num_examples, 100, 2) for each in splits.values()), known


def speech(*_: Any, **__: Any) -> None:
    """Recordings and what is said in them."""
    folder = Path("datasets/LJSpeech-1.1")
    (folder / "wavs").mkdir(parents=True)
    lines = []
    for index in range(25):
        with wave.open(str(folder / "wavs" / f"LJ{index:03}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(np.random.default_rng(index).integers(-9000, 9000, size=8000, dtype=np.int16).tobytes())
        text = words(4, seed=index)
        lines.append(f"LJ{index:03}|{text}|{text}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def roads(*_: Any, **__: Any) -> str:
    """The distances between 228 roads, and the speeds on them."""
    random = np.random.default_rng(11)
    folder = Path("roads")
    folder.mkdir()
    np.savetxt(folder / "PeMSD7_W_228.csv", random.integers(0, 9000, size=(228, 228)), "%d", ",")
    np.savetxt(folder / "PeMSD7_V_228.csv", random.normal(60, 5, size=(260, 228)), "%.1f", ",")
    return "roads/PeMSD7_Full.zip"


def climate(*_: Any, **__: Any) -> str:
    """A zip file with measurements of the weather."""
    import pandas as pd

    names = "p (mbar),T (degC),Tpot (K),Tdew (degC),rh (%),VPmax (mbar),VPact (mbar),VPdef (mbar),sh (g/kg)"
    names += ",H2OC (mmol/mol),rho (g/m**3),wv (m/s),max. wv (m/s),wd (deg)"
    table = pd.DataFrame(np.random.default_rng(12).normal(10, 3, size=(900, 14)).round(2), columns=names.split(","))
    table.insert(0, "Date Time", [f"01.01.2009 {i // 60:02}:{i % 60:02}:00" for i in range(900)])
    with ZipFile("climate.zip", "w") as file:
        file.writestr("jena_climate_2009_2016.csv", table.to_csv(index=False))
    return "climate.zip"


def citations(*_: Any, **__: Any) -> str:
    """The folder of an archive: papers with the terms in them, and which one cites which."""
    random = np.random.default_rng(13)
    folder = Path("papers") / "cora"
    folder.mkdir(parents=True)
    terms = random.integers(0, 2, size=(120, 1433))
    rows = [[str(1000 + i), *map(str, each), f"subject_{i % 7}"] for i, each in enumerate(terms)]
    (folder / "cora.content").write_text("\n".join("\t".join(row) for row in rows), encoding="utf-8")
    pairs = [f"{1000 + random.integers(120)}\t{1000 + random.integers(120)}" for _ in range(400)]
    (folder / "cora.cites").write_text("\n".join(pairs), encoding="utf-8")
    return "papers"


def census(names: list[str]) -> Any:
    """A table of people: numbers, texts that begin with a space, and what they earn."""
    import pandas as pd

    random = np.random.default_rng(14)
    numbers = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
    columns: dict[str, Any] = {
        name: random.integers(0, 5, size=300)
        if name in numbers
        else [f" {name}_{i}" for i in random.integers(0, 5, 300)]
        for name in names
    }
    columns["income_bracket"] = random.choice([" <=50K", " >50K"], size=300)
    return pd.DataFrame(columns)


def forest_cover() -> Any:
    """A table of plots of land: ten numbers, one of four areas, one of forty soils, one of seven kinds of trees."""
    import pandas as pd

    random = np.random.default_rng(15)
    parts = [random.integers(0, 300, size=(400, 10)), np.eye(4, dtype=int)[random.integers(0, 4, 400)]]
    parts += [np.eye(40, dtype=int)[random.integers(0, 40, 400)], random.integers(1, 8, size=(400, 1))]
    return pd.DataFrame(np.concatenate(parts, axis=1))


def ratings() -> None:
    """The files of a million ratings, with few of them."""
    random = np.random.default_rng(16)
    folder = Path("ml-1m")
    folder.mkdir()
    rows = [f"{i % 100}::{random.integers(1, 60)}::{random.integers(1, 6)}::{i}" for i in range(600)]
    (folder / "ratings.dat").write_text("\n".join(rows), encoding="utf-8")


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

    return tf.data.Dataset.from_tensor_slices((_pixels(count, size), np.arange(count, dtype=np.int64) % classes))


def _pixels(count: int, size: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size=(count, size, size, 3), dtype=np.uint8)


def _images(shape: tuple[int, ...], classes: int, *, flat_labels: bool = False) -> tuple[Split, Split]:
    random = np.random.default_rng(1)

    def split(count: int) -> Split:
        labels = (np.arange(count) % classes).astype("uint8" if flat_labels else "int64")
        return random.integers(0, 256, size=(count, *shape), dtype=np.uint8), labels if flat_labels else labels[:, None]

    return split(TRAIN), split(TEST)
