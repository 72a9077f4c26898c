#!/bin/sh
# Packs SOURCE/NAME/VERSION to TARGET/NAME/VERSION, for every name and version: bake.sh SOURCE TARGET
# It runs while the image is built, on a processor with the same features as those that will run it: the weights that
# LiteRT arranges for the processor are kept beside each bundle. Then a server starts once with all of them and has to be
# warm, so that what the first start of a machine has to make is there, and an image with a dead model is not built.
set -eu
source=$1 target=$2
models=
for version in "$source"/*/*/; do
  version=${version%/}
  name=$(basename "$(dirname "$version")")
  mkdir -p "$target/$name"
  glowplug pack "$version" -o "$target/$name/$(basename "$version")"
  case " $models " in *" $name=$target/$name "*) ;; *) models="$models $name=$target/$name" ;; esac
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkfifo "$scratch/said"
# shellcheck disable=SC2086 # one word for each model
glowplug serve $models --rest-port 0 --grpc-port 0 --rest-socket "$scratch/socket" >"$scratch/said" &
server=$!
said=
read -r said <"$scratch/said" || true # a line when every model is warm, none when the server ended
kill "$server" 2>/dev/null || true
wait "$server" || true
test -n "$said" || { echo 'a model does not answer: the reason stands above' >&2; exit 1; }

# Everybody may read them, and nobody may write: whichever user the container has.
chmod -R a+rX,a-w "$target"
