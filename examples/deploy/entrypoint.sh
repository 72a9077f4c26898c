#!/bin/sh
# What the container runs, as TensorFlow Serving's image has it: the model MODEL_NAME below MODEL_BASE_PATH, on ports 8500
# and 8501 of all addresses. Words behind the image's name are flags of `glowplug serve`; the last of a kind counts.
set -eu
exec glowplug serve --host=0.0.0.0 --port=8500 --rest_api_port=8501 \
  --model_name="$MODEL_NAME" --model_base_path="$MODEL_BASE_PATH/$MODEL_NAME" "$@"
