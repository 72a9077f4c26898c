#!/bin/sh
# Puts a bundle and the traces of a training script where a container image has them: bake.sh BUNDLE_URL SCRIPT
# It runs while the image is built, on a processor with the same features as those that will run it.
set -eu
bundle=$1 script=$2
root=${ROOT:-}
mkdir -p "$root/opt/glowplug" "$root/opt/model"

# The bundle, outside of any cache: it is mapped from the image's own layer.
glowplug pull "$bundle" -o "$root/opt/model/model.glow" --force

# The traces: the first run keeps what it traced, the second restores it and checks it against a fresh trace.
for run in first second; do
  GLOWPLUG_CACHE_DIR="$root/opt/glowplug" glowplug run "$script"
done
# All of them in one file, which can also be taken to other images: glowplug cache import.
glowplug cache export "$root/opt/glowplug/traces.tar" --cache-dir "$root/opt/glowplug/traces" --force

# Everybody may read it, and nobody may write: so it is used by whichever user the container has, and never changed.
chmod -R a+rX,a-w "$root/opt/glowplug" "$root/opt/model"
