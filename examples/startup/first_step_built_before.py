"""Train the same transformer after its optimizer has made its variables."""

import keras
import numpy as np
from encoder import build

tokens = np.arange(24 * 32, dtype="int32").reshape(24, 32) % 1000
model = build()
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.optimizer.build(model.trainable_variables)
model.fit(tokens, tokens, batch_size=8, verbose=0)
