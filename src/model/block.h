// model/block.h
//
// One block of a decoder: attention, then a feed-forward part, each adding to the residual stream.
// The two shapes are Gpt2Block and LlamaBlock; both are written forward and backward by hand, step
// for step in opposite order. Shape letters as in kernels/ops.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/layers.h"

namespace gruca::model {

struct BatchShape {
    std::int64_t b;  // Sequences.
    std::int64_t t;  // Tokens in each.
    std::int64_t n() const { return b * t; }
};

// Memory that blocks use one after another: nothing in it lives from one call to the next.
template <class Real>
struct Scratch {
    Scratch(const spec::ModelConfig& config, const kernels::Ops<Real>& ops, BatchShape largest);

    tensor::Buffer<Real> narrow_nc;  // Rows of the width, or of all query heads if that is more.
    tensor::Buffer<Real> wide;       // Rows of the widest thing in a block.
    tensor::Buffer<Real> attention;
    tensor::Buffer<Real> cos_tk;  // Of rotary positions; filled once.
    tensor::Buffer<Real> sin_tk;

    // Where each token begins to see, as kernels::AttentionForward has it: in a layer that reaches
    // back to the beginning, and in one with a window. The decoder states it for each batch. Empty:
    // at the beginning.
    std::vector<std::int32_t> first_key_bt, windowed_first_key_bt;
    const std::int32_t* first_keys(bool windowed) const {
        const auto& all = windowed ? windowed_first_key_bt : first_key_bt;
        return all.empty() ? nullptr : all.data();
    }
};

template <class Real>
class Block {
  public:
    virtual ~Block() = default;

    // y = x + attention(x), then + feed-forward of that. Keeps what the backward pass needs.
    virtual void forward(Real* y_nc, const Real* x_nc, BatchShape shape) = 0;

    // `d_nc` holds the gradient of y and then that of x. `x_nc` as in the last forward pass, whose
    // kept values are used up: backward may be called once.
    virtual void backward(Real* d_nc, const Real* x_nc, BatchShape shape) = 0;
};

template <class Real>
struct BlockParts {
    const spec::ModelConfig& config;
    kernels::Ops<Real>& ops;
    const Bindings<Real>& bindings;
    Scratch<Real>& scratch;
    BatchShape largest;
};

template <class Real>
std::unique_ptr<Block<Real>> make_gpt2_block(const BlockParts<Real>& parts, std::int64_t layer);
template <class Real>
std::unique_ptr<Block<Real>> make_llama_block(const BlockParts<Real>& parts, std::int64_t layer);

}  // namespace gruca::model
