#!/usr/bin/env bash
# A whole training job on real text, from nothing: corpus, tokenizer, shards, service, a job created by
# the real AWS CLI on two nodes, its log, its model, three continuations. Everything it makes lies in
# build/demo; it uses AWS files, a data directory and a port of its own; it leaves nothing running.
# Usage: demo.sh [--short]      --short: a small corpus and few steps, for the tests.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
bin=${GRUCA_APPS:-$root/build/release/apps}
short=${1:-}
work=${GRUCA_DEMO_DIR:-$root/build/demo}
job=demo
# The CLI of Debian (version 2). It does not read endpoint_url from the profile, hence --endpoint-url.
aws=${GRUCA_DEMO_AWS:-/usr/bin/aws}

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
fail() { echo "demo: $*" >&2; exit 1; }

clean_up() {
    local status=$?
    trap - EXIT
    trap '' INT TERM # A second Ctrl-C must not end the cleaning up; what is started here ignores it too.
    [ -d "$work/home" ] && "$bin/gruca" service stop --data-dir "$work/home" --stop-jobs >"$work/stop.log" 2>&1 || true
    exit "$status"
}

prepare() {
    # What an earlier run left, should it have been killed before it could clean up.
    if [ -d "$work/home" ]; then
        "$bin/gruca" service stop --data-dir "$work/home" --stop-jobs >/dev/null 2>&1 || true
    fi
    rm -rf "$work"
    mkdir -p "$work/aws"
    export AWS_SHARED_CREDENTIALS_FILE=$work/aws/credentials AWS_CONFIG_FILE=$work/aws/config
    export AWS_PROFILE=gruca AWS_PAGER='' AWS_EC2_METADATA_DISABLED=true AWS_MAX_ATTEMPTS=2
    unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_ENDPOINT_URL AWS_DEFAULT_REGION AWS_REGION
    export GRUCA_HOME=$work/home
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

settings() {
    if [ "$short" = --short ]; then
        vocabulary=1024 files=120 steps=40 width=64 layers=2 heads=2 context=64 batch=16 micro=8
        warmup=5 loss_max=99
    else
        vocabulary=8192 files=100000 steps=600 width=128 layers=4 heads=4 context=128 batch=16 micro=8
        warmup=30 loss_max=6.3
    fi
}

make_data() {
    say "1  Real text: the kernel's documentation, from Debian's package linux-doc-6.1"
    dpkg -L linux-doc-6.1 | grep '/Documentation/.*\.rst\.gz$' | head -n "$files" >"$work/corpus.list" || true
    [ -s "$work/corpus.list" ] || fail "Debian's package linux-doc-6.1 is not installed; run ./dev setup"
    echo "$(wc -l <"$work/corpus.list") files"
    say "2  A tokenizer of $vocabulary words, trained on it"
    "$bin/gruca" data tokenizer --vocabulary "$vocabulary" --output "$work/tokenizer.json" --files-from "$work/corpus.list"
    say "3  Token shards"
    "$bin/gruca" data tokenize --tokenizer "$work/tokenizer.json" --output "$work/data" --validation-fraction 0.02 \
        --files-from "$work/corpus.list"
}

start_service() {
    say "4  The service"
    "$bin/gruca" service start --data-dir "$work/home" --port 0
    endpoint=$(sed -n 's/.*"endpoint": *"\([^"]*\)".*/\1/p' "$work/home/service.json")
    "$bin/gruca" store cp -r "$work/data/train" s3://demo/data/train
    "$bin/gruca" store cp -r "$work/data/validation" s3://demo/data/validation
    "$bin/gruca" store cp "$work/tokenizer.json" s3://demo/data/tokenizer/tokenizer.json
}

channel() {
    printf '{"ChannelName": "%s", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://demo/data/%s/"}}}' "$1" "$1"
}

create_job() {
    say "5  A training job on two instances, created by the AWS CLI"
    cat >"$work/job.json" <<JSON
{
  "TrainingJobName": "$job",
  "AlgorithmSpecification": {"TrainingImage": "gruca/llm-trainer", "TrainingInputMode": "File"},
  "RoleArn": "arn:aws:iam::000000000000:role/gruca",
  "InputDataConfig": [$(channel train), $(channel validation), $(channel tokenizer)],
  "OutputDataConfig": {"S3OutputPath": "s3://demo/out"},
  "CheckpointConfig": {"S3Uri": "s3://demo/checkpoints/$job"},
  "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 10},
  "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
  "HyperParameters": {
    "architecture": "llama", "layers": "$layers", "width": "$width", "heads": "$heads", "context_length": "$context",
    "max_steps": "$steps", "global_batch_size": "$batch", "micro_batch_size": "$micro", "learning_rate": "0.004",
    "min_learning_rate": "0.0004",
    "warmup_steps": "$warmup", "eval_batches": "16", "eval_interval": "$((steps / 5))", "checkpoint_interval": "$((steps / 2))", "seed": "1"
  }
}
JSON
    echo "aws sagemaker create-training-job --endpoint-url $endpoint --cli-input-json file://$work/job.json"
    "$aws" sagemaker create-training-job --endpoint-url "$endpoint" --cli-input-json "file://$work/job.json"
    "$bin/gruca" job logs --follow "$job"
}

use_model() {
    say "6  The model"
    mkdir -p "$work/model"
    "$bin/gruca" store cp "s3://demo/out/$job/output/model.tar.gz" "$work/model.tar.gz"
    tar -xzf "$work/model.tar.gz" -C "$work/model"
    ls -l "$work/model"
    for prompt in "The kernel" "This driver supports" "To enable this option,"; do
        echo
        "$bin/gruca" model generate --model "$work/model" --prompt "$prompt" --tokens 40 --temperature 0.7 --seed 1
    done
}

judge() {
    say "7  How good is it?"
    loss=$("$aws" logs filter-log-events --endpoint-url "$endpoint" --log-group-name /aws/sagemaker/TrainingJobs \
        --log-stream-name-prefix "$job/algo-1" --query 'events[].message' --output text | tr '\t' '\n' |
        sed -n 's/^{"event":"eval".*"eval_loss":\([0-9.]*\).*/\1/p' | tail -n 1)
    [ -n "$loss" ] || fail "the log holds no evaluation"
    "$bin/gruca" data statistics --train "$work/data/train" --validation "$work/data/validation" --tokenizer "$work/tokenizer.json"
    echo "this model       $loss nats per token (validation)"
    awk -v loss="$loss" -v most="$loss_max" 'BEGIN {exit !(loss > 0 && loss <= most)}' ||
        fail "the validation loss is $loss; it should be at most $loss_max"
}

prepare
settings
make_data
start_service
create_job
use_model
judge
say "Done. Where to look next"
cat <<END
  $work/model        a Hugging Face directory: transformers loads it
  $work/home         the service's data: state, logs, the object store
  $work/job.json     the request; change it and create a job of your own
  README.md          a first job by hand
END
