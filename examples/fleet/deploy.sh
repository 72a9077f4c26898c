#!/bin/sh
# A model goes to a storage once, and every host of a fleet serves it from there: deploy.sh SAVED_MODEL BASE_URL VERSION
# BASE_URL is s3://bucket/models/half, hdfs://namenode:8020/models/half, or file:///mnt/cephfs/models/half for a mount.
# Credentials come from where the storage's own tools find them. The key is made on first use; hosts need KEY.pub alone.
set -eu
model=$1 base=$2 version=$3
key=${KEY:-fleet.key}
bundle=$(mktemp -d)/model.glow
trap 'rm -rf "$(dirname "$bundle")"' EXIT

test -f "$key" || glowplug keygen "$key"
glowplug pack "$model" -o "$bundle"
glowplug push "$bundle" "$base/$version" --sign "$key"
