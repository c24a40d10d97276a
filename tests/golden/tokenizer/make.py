"""Writes the golden files beside it: what Hugging Face's tokenizers 0.23.3 learns from corpus.txt
and how it cuts and encodes texts. The product must agree with every byte.

Run with that version installed:  python3 tests/golden/tokenizer/make.py
"""

import json
import pathlib
import random

import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VERSION = "0.23.3"
HERE = pathlib.Path(__file__).parent
TEXTS = [
    "", " ", "  ", "\n", "\t\t", "a", " a", "  a", "a ", "a  ", "a  b", "a\n\nb\r\n\r\n  c", "Hello, world!",
    "I'm DON'T we'll 'S it's 'tis they'd've 'r 'l 'v", "12345 1,234,567", "½ Ⅳ ②", "e\u0301 \u00e9 \ufb01n",
    "猫は水を見ていた", "\u00a0\u2003\u3000x", "\u0085\u001cx\u200by\ufeff", "<|endoftext|>", "a<|endoftext|>b",
    "\u0000a", "\U0010ffff\ufffd", "'", "''s", " 's", "!'s", "' s", "it'\u017f", "\u1c89\U00010d4a\U0002ebf0",
    "a" * 33, " " * 33 + "x", "lantern" * 40, "the theatre" * 30, "Čez jezero", "🙂🙂👩‍🚀",
]
# What strings are drawn from: every branch of the expression, and the borders of its classes.
ALPHABET = (
    list("aZs'tredvl 019.,!_-\n\t\r") + ["'s", "'ll", "'re", "  ", " '", "\r\n"]
    + list("\u00a0\u0085\u1680\u2003\u2028\u202f\u3000\u180e\u200b\u001c\u001f\ufeff")
    + list("éčžßЖλش日本한\u0301\u0903\u20dd½²Ⅳ③١०\u02bc\u2019🙂")
    + ["\u1c89", "\U00010d4a", "\U0001e94b", "\U0002ebf0", "\U00011f50", "\u0e31", "\u200d"]
)


def train(documents, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(documents, trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def case(tokenizer, text):
    pieces = [text[a:b] for _, (a, b) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    tokenizer.encode_special_tokens = True
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    special = tokenizer.encode(text, add_special_tokens=False).ids
    found = {"text": text, "piece_bytes": [len(piece.encode()) for piece in pieces], "ids": ids}
    if special != ids:
        found["ids_with_special_tokens"] = special
    return found


def main():
    assert tokenizers.__version__ == VERSION, f"needs tokenizers {VERSION}, not {tokenizers.__version__}"
    corpus = (HERE / "corpus.txt").read_bytes().decode()
    documents = corpus.split("=====\n")
    tokenizer = train(documents, 700)
    tokenizer.save(str(HERE / "tokenizer.json"))
    # To the end: until no pair is left, the cases of one word made by two merges included.
    merges = json.loads(train(documents, 100_000).to_str())["model"]["merges"]
    (HERE / "all_merges.txt").write_text("".join(f"{left} {right}\n" for left, right in merges))
    chance = random.Random(7)
    drawn = ["".join(chance.choices(ALPHABET, k=chance.randint(1, 16))) for _ in range(200)]
    cases = [case(tokenizer, text) for text in TEXTS + drawn + documents]
    lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in cases)
    (HERE / "encodings.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
