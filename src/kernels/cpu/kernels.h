// kernels/cpu/kernels.h
//
// The cpu implementation's operations as functions, one file an operation. cpu_ops.cpp checks the
// arguments and calls them.
#pragma once

#include "kernels/ops.h"

namespace gruca::kernels::cpu {

void embedding(const EmbeddingForward<float>& args);
void embedding(const EmbeddingBackward<float>& args);
void layer_norm(const LayerNormForward<float>& args);
void layer_norm(const LayerNormBackward<float>& args);
void rms_norm(const RmsNormForward<float>& args);
void rms_norm(const RmsNormBackward<float>& args);
void linear(const LinearForward<float>& args);
void linear(const LinearBackward<float>& args);
void rope(const Rope<float>& args);
void attention(const AttentionForward<float>& args);
void attention(const AttentionBackward<float>& args);
std::int64_t attention_scratch_count(std::int64_t t);
void gelu(const GeluForward<float>& args);
void gelu(const GeluBackward<float>& args);
void swiglu(const SwigluForward<float>& args);
void swiglu(const SwigluBackward<float>& args);
void add(const Add<float>& args);
void cross_entropy(const CrossEntropy<float>& args);
void adamw(const AdamwStep<float>& args);
void sum_of_squares(const SumOfSquares<float>& args);

}  // namespace gruca::kernels::cpu
