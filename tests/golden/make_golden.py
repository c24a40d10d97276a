"""Writes the golden files: what PyTorch and transformers compute for tiny models, in float64.

    python tests/golden/make_golden.py DIRECTORY

For each model: loss, logits and every gradient of one batch, then some steps of AdamW with a warm-up,
a cosine and clipping: loss, gradient norm and learning rate of each step, and the weights at the end.
Weights and tokens come from a formula (see `mixed`) that tests/numerics repeats, so only results are
stored. Tensors are named and laid out as in Hugging Face's files; numbers are base64 of
little-endian doubles.
"""

import base64
import json
import math
import pathlib
import sys

import torch
import transformers
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3

BATCH = 2
IGNORED = -1  # A target without loss.
MODELS = {
    "gpt2": {
        "architecture": "gpt2", "layers": 2, "width": 12, "heads": 3, "kv_heads": 3, "hidden": 36,
        "context_length": 10, "vocabulary_size": 23, "tied_embeddings": True, "rope_theta": 10000.0,
        "norm_epsilon": 1e-5,
    },
    "llama": {
        "architecture": "llama", "layers": 2, "width": 16, "heads": 4, "kv_heads": 2, "hidden": 24,
        "context_length": 10, "vocabulary_size": 23, "tied_embeddings": False, "rope_theta": 500.0,
        "norm_epsilon": 1e-5,
    },
    # What the others have that llama has not, all at once where it can be.
    "llama3": {
        "architecture": "llama", "layers": 2, "width": 16, "heads": 4, "kv_heads": 2, "hidden": 24,
        "context_length": 10, "vocabulary_size": 23, "tied_embeddings": False, "rope_theta": 50.0,
        "norm_epsilon": 1e-5, "qkv_bias": True, "output_bias": True, "feed_forward_bias": True,
        "rope_scaling": {"kind": "llama3", "factor": 4.0, "low_frequency_factor": 1.0,
                         "high_frequency_factor": 3.0, "original_context_length": 16},
    },
    "mistral": {
        "architecture": "mistral", "layers": 2, "width": 16, "heads": 4, "kv_heads": 1, "hidden": 24,
        "context_length": 10, "vocabulary_size": 23, "tied_embeddings": False, "rope_theta": 500.0,
        "norm_epsilon": 1e-5, "sliding_window": 4, "first_windowed_layer": 0,
    },
    "qwen2": {
        "architecture": "qwen2", "layers": 2, "width": 16, "heads": 4, "kv_heads": 2, "hidden": 24,
        "context_length": 10, "vocabulary_size": 23, "tied_embeddings": True, "rope_theta": 500.0,
        "norm_epsilon": 1e-6, "qkv_bias": True, "sliding_window": 3, "first_windowed_layer": 1,
    },
    "qwen3": {
        "architecture": "qwen3", "layers": 2, "width": 16, "heads": 4, "kv_heads": 2, "hidden": 24,
        "context_length": 10, "vocabulary_size": 23, "tied_embeddings": False, "rope_theta": 500.0,
        "norm_epsilon": 1e-6, "head_norm": True, "head_size": 6,
    },
}
TRAINING = {
    "max_steps": 6, "global_batch_size": 4, "micro_batch_size": 2, "learning_rate": 0.02,
    "min_learning_rate": 0.002, "warmup_steps": 2, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95,
    "epsilon": 1e-8, "gradient_clip": 0.8,
}


def mixed(a, b):
    """32 bits that look random: a hash of two numbers (the finalizer of MurmurHash3)."""
    h = (a ^ (b * 0x9E3779B1)) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return h ^ (h >> 16)


def fnv1a(text):
    h = 0x811C9DC5
    for byte in text.encode():
        h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF
    return h


def weights_for(name, shape):
    """In [-1, 1), then scaled to what makes every part of the model matter."""
    count = math.prod(shape)
    at = fnv1a(name)
    values = [mixed(at, i) / 2**31 - 1 for i in range(count)]
    if len(shape) == 2:
        values = [0.3 * v for v in values]
    elif name.endswith("bias"):
        values = [0.1 * v for v in values]
    else:
        values = [1 + 0.2 * v for v in values]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def sample(index, config):
    length = config["context_length"] + 1
    return [mixed(index, j) % config["vocabulary_size"] for j in range(length)]


def rms_norm_in_double(self, x):
    """transformers computes it in float32 whatever the model's type."""
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def rotary_in_double(self, x, position_ids):
    """The same. The blend of llama3 is that of transformers' _compute_llama3_parameters."""
    rope = self.config.rope_parameters
    size = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.config.num_attention_heads
    inverse = 1.0 / rope["rope_theta"] ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
    if rope["rope_type"] == "llama3":
        turns = rope["original_max_position_embeddings"] * inverse / (2 * math.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        kept = ((turns - low) / (high - low)).clamp(0, 1)
        inverse = (1 - kept) * inverse / rope["factor"] + kept * inverse
    angles = position_ids[..., None].double() * inverse
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


# The model, its configuration, and the two classes that compute in float32.
FAMILIES = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig,
              modeling_llama.LlamaRMSNorm, modeling_llama.LlamaRotaryEmbedding),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig,
                modeling_mistral.MistralRMSNorm, modeling_mistral.MistralRotaryEmbedding),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config,
              modeling_qwen2.Qwen2RMSNorm, modeling_qwen2.Qwen2RotaryEmbedding),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config,
              modeling_qwen3.Qwen3RMSNorm, modeling_qwen3.Qwen3RotaryEmbedding),
}


def rope_parameters(config):
    parameters = {"rope_type": "default", "rope_theta": config["rope_theta"]}
    if scaling := config.get("rope_scaling"):
        parameters |= {"rope_type": scaling["kind"], "factor": scaling["factor"],
                       "low_freq_factor": scaling["low_frequency_factor"],
                       "high_freq_factor": scaling["high_frequency_factor"],
                       "original_max_position_embeddings": scaling["original_context_length"]}
    return parameters


def options_of(config):
    """What only some families have, in their words."""
    family, window = config["architecture"], config.get("sliding_window")
    if family == "llama":
        return {"attention_bias": config.get("qkv_bias", False), "mlp_bias": config.get("feed_forward_bias", False)}
    if family == "mistral":
        return {"sliding_window": window}
    options = {"use_sliding_window": window is not None, "sliding_window": window,
               "max_window_layers": config.get("first_windowed_layer", config["layers"])}
    return options | ({"head_dim": config["head_size"]} if family == "qwen3" else {})


def build(config):
    if config["architecture"] == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=config["vocabulary_size"], n_positions=config["context_length"],
            n_embd=config["width"], n_layer=config["layers"], n_head=config["heads"],
            n_inner=config["hidden"], layer_norm_epsilon=config["norm_epsilon"],
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="sdpa"))
    else:
        model_class, config_class = FAMILIES[config["architecture"]][:2]
        model = model_class(config_class(
            vocab_size=config["vocabulary_size"], hidden_size=config["width"],
            intermediate_size=config["hidden"], num_hidden_layers=config["layers"],
            num_attention_heads=config["heads"], num_key_value_heads=config["kv_heads"],
            max_position_embeddings=config["context_length"], rms_norm_eps=config["norm_epsilon"],
            rope_parameters=rope_parameters(config), tie_word_embeddings=config["tied_embeddings"],
            attn_implementation="sdpa", **options_of(config)))
    model = model.double().train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights_for(name, tuple(parameter.shape)))
    return model


def loss_sum(logits, targets):
    return torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=IGNORED,
        reduction="sum")


def encoded(tensor):
    return base64.b64encode(
        tensor.detach().double().contiguous().numpy().astype("<f8").tobytes()).decode()


def one_batch(config):
    """Loss, logits and gradients; some targets do not count."""
    model = build(config)
    rows = torch.tensor([sample(i, config) for i in range(BATCH)])
    tokens, targets = rows[:, :-1], rows[:, 1:].clone()
    targets[0, 3] = targets[1, 0] = targets[1, -1] = IGNORED
    logits = model(input_ids=tokens).logits
    loss = loss_sum(logits, targets)
    loss.backward()
    return {
        "ignored": [[0, 3], [1, 0], [1, config["context_length"] - 1]],
        "loss_sum": loss.item(),
        "loss_tokens": int((targets != IGNORED).sum()),
        "logits": encoded(logits),
        "gradients": {name: encoded(p.grad) for name, p in model.named_parameters()},
    }


def training(config):
    spec = TRAINING
    model = build(config)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() == 2], "weight_decay": spec["weight_decay"]},
         {"params": [p for p in parameters if p.dim() != 2], "weight_decay": 0.0}],
        lr=spec["learning_rate"], betas=(spec["beta1"], spec["beta2"]), eps=spec["epsilon"])
    schedule = transformers.get_cosine_with_min_lr_schedule_with_warmup(
        optimizer, num_warmup_steps=spec["warmup_steps"], num_training_steps=spec["max_steps"],
        min_lr=spec["min_learning_rate"])
    steps = []
    for step in range(spec["max_steps"]):
        schedule.step()  # Before the update: ours counts updates from 1 and never has a rate of 0.
        first = step * spec["global_batch_size"]
        rows = torch.tensor([sample(first + i, config) for i in range(spec["global_batch_size"])])
        loss = loss_sum(model(input_ids=rows[:, :-1]).logits, rows[:, 1:]) / rows[:, 1:].numel()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
        # clip_grad_norm_ adds 1e-6 to the norm it divides by, which is a difference to see at 1e-9.
        if norm > spec["gradient_clip"]:
            for p in parameters:
                p.grad.mul_(spec["gradient_clip"] / norm)
        steps.append({"loss": loss.item(), "gradient_norm": norm.item(),
                      "learning_rate": optimizer.param_groups[0]["lr"]})
        optimizer.step()
    return {"spec": spec, "steps": steps,
            "weights": {name: encoded(p) for name, p in model.named_parameters()}}


def require_patches_change_only_rounding(configs):
    """The functions replaced below must be transformers' own but for their precision."""
    def all_logits():
        with torch.no_grad():
            return [build(c)(input_ids=torch.tensor([sample(0, c)[:-1]])).logits for c in configs]

    originals = all_logits()
    for _, _, norm, rotary in FAMILIES.values():
        norm.forward, rotary.forward = rms_norm_in_double, rotary_in_double
    for config, original, patched in zip(configs, originals, all_logits()):
        difference = (original - patched).abs().max().item()
        assert 0 < difference < 1e-5, f"float32 against float64 in the norms of {config}: {difference}"


def main(directory):
    require_patches_change_only_rounding([c for c in MODELS.values() if c["architecture"] != "gpt2"])
    for name, config in MODELS.items():
        golden = {
            "made_by": {"script": "tests/golden/make_golden.py", "torch": torch.__version__,
                        "transformers": transformers.__version__},
            "config": config,
            "batch": one_batch(config),
            "training": training(config),
        }
        path = pathlib.Path(directory) / f"{name}.json"
        path.write_text(json.dumps(golden, indent=1) + "\n")
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
