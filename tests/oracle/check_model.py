"""Loads a model directory that gruca-train has written with transformers, and compares its scores with
those that gruca-train itself computes from it.

    check_model.py MODEL_DIRECTORY GRUCA_TRAIN
"""

import json
import pathlib
import random
import subprocess
import sys

import torch
import transformers
from transformers.utils import logging

# Of the largest score. Both compute in float32.
TOLERANCE = 2e-5


def our_logits(program, directory, tokens):
    command = [program, "logits", "--model", directory, "--tokens", ",".join(map(str, tokens))]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return torch.tensor(json.loads(output)["logits"], dtype=torch.float32)


def main(directory, program):
    logging.disable_progress_bar()
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if report[problem]:
            sys.exit(f"transformers finds {problem}: {report[problem]}")
    model.eval()
    config = model.config
    context = getattr(config, "n_positions", None) or config.max_position_embeddings
    chance = random.Random(7)
    worst = 0.0
    for length in (1, 2, context // 2, context):
        tokens = [chance.randrange(config.vocab_size) for _ in range(length)]
        ours = our_logits(program, directory, tokens)
        with torch.no_grad():
            theirs = model(input_ids=torch.tensor([tokens])).logits[0]
        if ours.shape != theirs.shape:
            sys.exit(f"{length} tokens: {tuple(ours.shape)} scores and transformers has {tuple(theirs.shape)}")
        difference = ((ours - theirs).abs().max() / theirs.abs().max()).item()
        worst = max(worst, difference)
        if not difference <= TOLERANCE:
            sys.exit(f"{length} tokens: scores differ by {difference:.1e} of the largest")
    print(f"  {type(model).__name__}, {model.num_parameters()} parameters: worst difference {worst:.1e}")

    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    text = "The kernel's memory:\n\tpages → frames, 4096 bytes."
    if tokenizer.decode(tokenizer(text)["input_ids"]) != text:
        sys.exit("transformers' tokenizer does not give a text back")
    prompt = tokenizer("The kernel", return_tensors="pt")
    with torch.no_grad():
        greedy = model.generate(**prompt, do_sample=False, max_new_tokens=20, pad_token_id=0)[0]
    expected = tokenizer.decode(greedy, skip_special_tokens=True)
    command = [program, "generate", "--model", directory, "--prompt", "The kernel", "--tokens", "20", "--temperature", "0"]
    ours = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if ours.rstrip("\n") != expected.rstrip("\n"):
        sys.exit(f"the likeliest continuation is {ours!r}, and transformers' is {expected!r}")
    print("  the likeliest continuation of 20 tokens is the same")


main(str(pathlib.Path(sys.argv[1])), sys.argv[2])
