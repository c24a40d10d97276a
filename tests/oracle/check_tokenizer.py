"""Compares our tokenizer with Hugging Face's: learned from the same files, and used on them.

    check_tokenizer.py TOKENIZER_JSON SHARD_DIRECTORY CORPUS_DIRECTORY
"""

import json
import pathlib
import struct
import sys

import numpy
import tokenizers

END = "<|endoftext|>"


def learn(texts, vocabulary):
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=0, special_tokens=[END],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    theirs.train_from_iterator(texts, trainer)
    return json.loads(theirs.to_str())["model"]


def read_shard(directory):
    """The documents of a shard, as lists of ids (docs/formats/token-shards.md)."""
    index = (directory / "tokens.idx").read_bytes()
    magic, version, kind, sequences, bounds = struct.unpack_from("<9sQBQQ", index)
    assert magic == b"MMIDIDX\0\0" and version == 1, (magic, version)
    dtype = {8: "<u2", 4: "<i4"}[kind]
    lengths = numpy.frombuffer(index, "<i4", sequences, struct.calcsize("<9sQBQQ"))
    ids = numpy.fromfile(directory / "tokens.bin", dtype)
    assert lengths.sum() == len(ids) and bounds == sequences + 1
    return [part.tolist() for part in numpy.split(ids, numpy.cumsum(lengths)[:-1])]


def merges_as_pairs(merges):
    return [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in merges]


def main(tokenizer_json, shard, corpus):
    files = sorted(pathlib.Path(corpus).iterdir())
    texts = [path.read_bytes().decode("utf-8", errors="replace") for path in files]
    ours = json.loads(pathlib.Path(tokenizer_json).read_text())["model"]
    theirs = learn(texts, len(ours["vocab"]))
    if ours["vocab"] != theirs["vocab"]:
        sys.exit("the vocabularies differ")
    pairs = [merges_as_pairs(model["merges"]) for model in (ours, theirs)]
    for place, (our, their) in enumerate(zip(*pairs, strict=True)):
        if our != their:
            sys.exit(f"merge {place} is {our} and Hugging Face's is {their}")
    print(f"  {len(pairs[0])} merges and {len(ours['vocab'])} tokens are equal")

    loaded = tokenizers.Tokenizer.from_file(tokenizer_json)
    end = loaded.token_to_id(END)
    # A document that mentions the special token's words does not end there, in our shards.
    plain = tokenizers.Tokenizer(loaded.model)
    plain.pre_tokenizer = loaded.pre_tokenizer
    documents = read_shard(pathlib.Path(shard))
    tokens = 0
    for path, text, ids in zip(files, texts, documents, strict=True):
        expected = plain.encode(text, add_special_tokens=False).ids + [end]
        if ids != expected:
            at = next((i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), min(len(ids), len(expected)))
            sys.exit(f"{path.name}: token {at} is {ids[at:at + 5]} and Hugging Face's is {expected[at:at + 5]}")
        if loaded.decode(ids[:-1]) != text:
            sys.exit(f"{path.name}: Hugging Face decodes our tokens to another text")
        tokens += len(ids)
    print(f"  {tokens} tokens of {len(documents)} documents are equal")


main(*sys.argv[1:])
