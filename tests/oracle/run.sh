#!/usr/bin/env bash
# What ./dev oracle runs, in the virtual environment it has made: the product beside PyTorch,
# transformers and tokenizers, live. Every check prints what it has compared; the first that fails
# ends the run.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
bin=${GRUCA_APPS:-$root/build/release/apps}
python=${GRUCA_ORACLE_PYTHON:-$root/.oracle-venv/bin/python}
here=$root/tests/oracle
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive

echo "oracle: the golden files"
"$python" "$here/check_golden.py" "$root/tests/golden" "$work"

echo "oracle: the tokenizer"
mkdir -p "$work/corpus"
documents=0
while read -r path && [ "$documents" -lt 60 ]; do
    documents=$((documents + 1))
    zcat "$path" >"$work/corpus/$(printf '%03d' "$documents").txt"
done < <(dpkg -L linux-doc-6.1 | grep '/Documentation/.*\.rst\.gz$' | LC_ALL=C sort)
[ "$documents" = 60 ] || { echo "oracle: needs Debian's package linux-doc-6.1" >&2; exit 1; }
cp "$here/awkward.txt" "$work/corpus/"
find "$work/corpus" -type f | LC_ALL=C sort >"$work/corpus.list"
"$bin/gruca" data tokenizer --vocabulary 2000 --output "$work/tokenizer.json" --files-from "$work/corpus.list" >/dev/null
"$bin/gruca" data tokenize --tokenizer "$work/tokenizer.json" --output "$work/shards" \
    --files-from "$work/corpus.list" >/dev/null
"$python" "$here/check_tokenizer.py" "$work/tokenizer.json" "$work/shards/train" "$work/corpus"

for architecture in gpt2 llama; do
    echo "oracle: a $architecture model, trained here"
    job=$work/$architecture
    mkdir -p "$job/input/config" "$job/input/data" "$job/model" "$job/output"
    cp -r "$work/shards/train" "$job/input/data/train"
    mkdir "$job/input/data/tokenizer"
    cp "$work/tokenizer.json" "$job/input/data/tokenizer/"
    kv_heads=0
    [ "$architecture" = llama ] && kv_heads=2
    cat >"$job/input/config/hyperparameters.json" <<JSON
{"architecture": "$architecture", "layers": "2", "width": "64", "heads": "4", "kv_heads": "$kv_heads",
 "context_length": "64", "max_steps": "30", "global_batch_size": "8", "warmup_steps": "5", "learning_rate": "0.003"}
JSON
    "$bin/gruca-train" train --base-dir "$job" >"$job/log" 2>&1 || { cat "$job/log" >&2; exit 1; }
    "$python" "$here/check_model.py" "$job/model" "$bin/gruca-train"
done
echo "oracle: programs of other people"
PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1 GRUCA_APPS=$bin "$root/tests/e2e/in_lo.sh" \
    "$python" -m pytest -q -p no:cacheprovider -p conftest "$here/strangers"
echo "oracle: all agree"
