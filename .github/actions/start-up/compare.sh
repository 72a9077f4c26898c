#!/bin/sh
# Profiles a program here and at another commit, and writes what changed as Markdown: compare.sh PROGRAM BASE COMMENT
# PROGRAM is what follows `glowplug profile`, as one text. REPEAT says how often each side runs. The exit code is that of
# `glowplug budget`, where the project has limits in its pyproject.toml.
set -eu
program=$1 base=$2 comment=$3
repeat=${REPEAT:-3}
scratch=$(mktemp -d)
git worktree add --quiet --detach "$scratch/base" "$base"
trap 'git worktree remove --force "$scratch/base"; rm -rf "$scratch"' EXIT

eval "set -- $program" # into words, as a shell reads them
glowplug profile -q --force --repeat "$repeat" -o after.json --html after.html "$@" >/dev/null
(cd "$scratch/base" && glowplug profile -q --repeat "$repeat" -o "$scratch/before.json" "$@" >/dev/null)

{
  echo "### Start of \`$program\`"
  echo
  echo '```text'
  glowplug compare "$scratch/before.json" after.json
  glowplug compare "$scratch/before.json" after.json --force --html change.html
  echo '```'
} >"$comment"
if grep -q '^\[tool\.glowplug\.budget' pyproject.toml 2>/dev/null; then
  glowplug budget after.json
fi
