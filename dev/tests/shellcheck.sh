#!/usr/bin/env bash
# Checks every shell script below dev/ and .ci/, found by its first line or its suffix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mapfile -t scripts < <(grep -rlE '^(#!.*\b(ba)?sh$|# shellcheck shell=)' dev .ci)
[ ${#scripts[@]} -gt 5 ] || { echo "found only ${#scripts[@]} scripts below dev/ and .ci/" >&2; exit 1; }
shellcheck "${scripts[@]}"
