"""A training script as people write them for SageMaker: two instances, torch.distributed over Gloo."""

import argparse
import json
import os
import pathlib
import time

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=int(os.environ.get("SM_HP_STEPS", 3)))
parser.add_argument("--model-dir", default=os.environ["SM_MODEL_DIR"])
parser.add_argument("--wait-for")
arguments = parser.parse_args()

hosts = json.loads(os.environ["SM_HOSTS"])
os.environ.setdefault("RANK", str(hosts.index(os.environ["SM_CURRENT_HOST"])))
os.environ.setdefault("WORLD_SIZE", str(len(hosts)))
os.environ.setdefault("MASTER_PORT", "7777")
torch.manual_seed(0)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {world} joined {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
while arguments.wait_for and not pathlib.Path(arguments.wait_for).exists():
    time.sleep(0.1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(arguments.steps):
    x = torch.full((8, 4), float(rank + 1))
    loss = (model(x) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = [torch.empty(1, 4) for _ in range(world)]
dist.all_gather(weights, model.module.weight.detach())
assert all(torch.equal(weights[0], other) for other in weights), "ranks have drifted apart"
if rank == 0:
    torch.save(model.module.state_dict(), os.path.join(arguments.model_dir, "model.pt"))
if os.environ.get("FAIL_ON") == str(rank):
    raise SystemExit("asked to fail")
dist.destroy_process_group()
print(f"rank {rank} done after {arguments.steps} steps", flush=True)
