#!/bin/sh
# What each host of the fleet runs: host.sh NAME BASE_URL PUBLIC_KEY [OPTIONS OF glowplug serve]
# New versions are found, fetched once for the host, warmed and swapped in. What the key did not sign is not served.
set -eu
name=$1 base=$2 key=$3
shift 3
exec glowplug serve "$name=$base" --trust-key "$key" --require-signature "$@"
