"""The demo's model in PyTorch, eager, fp32, one process on all cores: prints its version and its tokens a second.

Run with the oracle's Python, on the directory of a finished demo: the shape comes from its model, batch and length
from its job. The data are random tokens, since speed does not depend on them. The median of the timed steps counts."""

import json
import pathlib
import statistics
import sys
import time

import torch
import transformers

WARM_UP, STEPS = 3, 15

demo = pathlib.Path(sys.argv[1])
given = json.loads((demo / "job.json").read_text())["HyperParameters"]
length, batch = int(given["context_length"]), int(given["global_batch_size"])
torch.manual_seed(1)
config = transformers.LlamaConfig.from_pretrained(demo / "model")
model = transformers.LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
tokens = torch.randint(0, config.vocab_size, (batch, length + 1))
times = []
for step in range(WARM_UP + STEPS):
    begin = time.perf_counter()
    logits = model(tokens[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, config.vocab_size), tokens[:, 1:].reshape(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step >= WARM_UP:
        times.append(time.perf_counter() - begin)
print(torch.__version__.split("+")[0], batch * length / statistics.median(times))
