// kernels/ops.h
//
// The mathematics of a transformer, as a contract. One overload an operation and direction; the
// implementations are chosen at run time:
//
//   reference   plain loops, sums in double; obviously right; what the others are compared to.
//               Also over double, where everything is double, for tests that hold to 1e-12.
//   cpu         threads and SIMD, float
//
// Rules every method keeps:
//   * The caller owns every buffer, including scratch. Rows are contiguous.
//   * Gradients of parameters are added to (+=). Gradients of activations are written (=), unless
//     the argument struct has `accumulate_dx` and it is set: that is how the second consumer of an
//     activation, a residual stream above all, adds its part.
//   * Arguments are checked with CHECK before any work; a violation is a bug of the caller.
//     Indices that come from data (tokens, targets) are the caller's to validate first.
//   * The same arguments give the same bits, in every run. What is more, no result of any operation
//     depends on the number of threads: work is divided by the problem's shape alone.
//   * No output may overlap an input, except where a struct says so.
//
// An optional pointer has the default nullptr; every other member must be named by the caller.
//
// Shape letters: B batch, T time, N = B*T rows, C channels, I and O the widths of a matrix product,
// H query heads, G key/value heads (H is a multiple of G), D head size, V words, K = D/2.
// A name ends in the letters of its shape: `x_nc` is a matrix [N, C].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace gruca::kernels {

// A target with this value has no loss and no gradient.
inline constexpr std::int32_t kIgnoredTarget = -1;

// y[b,t] = token_weight[token[b,t]] + position_weight[t].
template <class Real>
struct EmbeddingForward {
    Real* y_nc;
    const std::int32_t* token_n;  // In [0, v).
    const Real* token_weight_vc;
    const Real* position_weight_tc = nullptr;  // Learned positions; null: none.
    std::int64_t b;
    std::int64_t t;
    std::int64_t c;
    std::int64_t v;
};

template <class Real>
struct EmbeddingBackward {
    Real* dtoken_weight_vc;
    Real* dposition_weight_tc = nullptr;
    const Real* dy_nc;
    const std::int32_t* token_n;
    std::int64_t b;
    std::int64_t t;
    std::int64_t c;
    std::int64_t v;
};

// y = (x - mean) * rstd * weight + bias, row by row.
template <class Real>
struct LayerNormForward {
    Real* y_nc;
    Real* mean_n;  // Kept, with rstd, for the backward pass.
    Real* rstd_n;
    const Real* x_nc;
    const Real* weight_c;
    const Real* bias_c;
    std::int64_t n;
    std::int64_t c;
    double epsilon;
};

template <class Real>
struct LayerNormBackward {
    Real* dx_nc;  // May be dy_nc, unless it accumulates.
    Real* dweight_c;
    Real* dbias_c;
    const Real* dy_nc;
    const Real* x_nc;
    const Real* weight_c;
    const Real* mean_n;
    const Real* rstd_n;
    std::int64_t n;
    std::int64_t c;
    bool accumulate_dx;
};

// y = x * rstd * weight with rstd = 1 / sqrt(mean(x^2) + epsilon), row by row.
template <class Real>
struct RmsNormForward {
    Real* y_nc;
    Real* rstd_n;
    const Real* x_nc;
    const Real* weight_c;
    std::int64_t n;
    std::int64_t c;
    double epsilon;
};

template <class Real>
struct RmsNormBackward {
    Real* dx_nc;  // May be dy_nc, unless it accumulates.
    Real* dweight_c;
    const Real* dy_nc;
    const Real* x_nc;
    const Real* weight_c;
    const Real* rstd_n;
    std::int64_t n;
    std::int64_t c;
    bool accumulate_dx;
};

// y = x W^T + bias. W is [out, in], row-major, as in Hugging Face's files for nn.Linear.
template <class Real>
struct LinearForward {
    Real* y_no;
    const Real* x_ni;
    const Real* weight_oi;
    const Real* bias_o = nullptr;
    std::int64_t n;
    std::int64_t i;
    std::int64_t o;
};

// dx (+)= dy W;  dW += dy^T x;  dbias += column sums of dy. Each is skipped where its output is
// null.
template <class Real>
struct LinearBackward {
    Real* dx_ni = nullptr;
    Real* dweight_oi = nullptr;
    Real* dbias_o = nullptr;
    const Real* dy_no;
    const Real* x_ni;       // Needed for dweight.
    const Real* weight_oi;  // Needed for dx.
    std::int64_t n;
    std::int64_t i;
    std::int64_t o;
    bool accumulate_dx;
};

// Rotary position embedding, in place, over heads inside rows of `stride` elements. The halves of a
// head are paired (element k with k + D/2), as in Hugging Face's Llama:
//   x[k], x[k+K] = x[k] cos[t,k] - x[k+K] sin[t,k],  x[k+K] cos[t,k] + x[k] sin[t,k]
// The tables hold whatever angle scaling the model wants. The backward pass is the inverse turn.
template <class Real>
struct Rope {
    Real* x_nhd;
    std::int64_t stride;  // Elements from one row to the next, at least h * d.
    const Real* cos_tk;
    const Real* sin_tk;
    std::int64_t b;
    std::int64_t t;
    std::int64_t h;
    std::int64_t d;  // Even.
    bool inverse;
};

// out = softmax(scale q k^T, causal) v for each head; query head h reads key/value head h / (H/G).
// q, k and v may lie side by side in one buffer: their rows are a stride apart.
//
// first_key_bt says where in its sequence each query begins to see: a sliding window, the beginning
// of its document, or whichever is later. In [0, t], and never falling along a sequence.
template <class Real>
struct AttentionForward {
    Real* out_nhd;  // Rows of h * d.
    Real* lse_bht;  // log(sum(exp(scores))) of each row, kept for the backward pass.
    const Real* q_nhd;
    const Real* k_ngd;
    const Real* v_ngd;
    const std::int32_t* first_key_bt = nullptr;  // Null: all see from the beginning.
    std::int64_t q_stride;
    std::int64_t k_stride;
    std::int64_t v_stride;
    std::int64_t b;
    std::int64_t t;
    std::int64_t h;
    std::int64_t g;
    std::int64_t d;
    double scale;             // Usually 1 / sqrt(d).
    std::span<Real> scratch;  // attention_scratch_count(t, h, g, d) elements.
};

// dq, dk and dv have the strides of q, k and v, and may lie side by side likewise.
template <class Real>
struct AttentionBackward {
    Real* dq_nhd;
    Real* dk_ngd;
    Real* dv_ngd;
    const Real* dout_nhd;
    const Real* out_nhd;
    const Real* lse_bht;
    const Real* q_nhd;
    const Real* k_ngd;
    const Real* v_ngd;
    const std::int32_t* first_key_bt = nullptr;  // Null: all see from the beginning.
    std::int64_t q_stride;
    std::int64_t k_stride;
    std::int64_t v_stride;
    std::int64_t b;
    std::int64_t t;
    std::int64_t h;
    std::int64_t g;
    std::int64_t d;
    double scale;
    std::span<Real> scratch;
};

// y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), "gelu_new".
template <class Real>
struct GeluForward {
    Real* y;  // May be x.
    const Real* x;
    std::int64_t count;
};

template <class Real>
struct GeluBackward {
    Real* dx;  // May be dy.
    const Real* dy;
    const Real* x;
    std::int64_t count;
};

// y = silu(gate) * up.
template <class Real>
struct SwigluForward {
    Real* y;
    const Real* gate;
    const Real* up;
    std::int64_t count;
};

template <class Real>
struct SwigluBackward {
    Real* dgate;  // May be gate.
    Real* dup;    // May be up.
    const Real* dy;
    const Real* gate;
    const Real* up;
    std::int64_t count;
};

// y = a + b: residual streams. Both inputs have the gradient dy, so there is no backward pass.
template <class Real>
struct Add {
    Real* y;  // May be a or b.
    const Real* a;
    const Real* b;
    std::int64_t count;
};

// loss[n] = log(sum(exp(logits[n]))) - logits[n][target[n]], or 0 where the target is ignored.
// dlogits = dloss * (softmax(logits) - one_hot(target)), all zero in ignored rows. Forward and
// backward are one operation, so a caller that walks a large batch in pieces keeps the logits of
// one piece only.
template <class Real>
struct CrossEntropy {
    Real* loss_n;
    Real* dlogits_nv = nullptr;  // May be logits_nv. Null: only the loss is wanted.
    double* loss_sum;            // += the losses, summed in double.
    std::int64_t* target_count;  // += the number of targets not ignored.
    const Real* logits_nv;
    const std::int32_t* target_n;  // In [0, v), or kIgnoredTarget.
    std::int64_t n;
    std::int64_t v;
    double dloss;  // Gradient of the final loss by each row's loss, say 1 / tokens of the step.
};

// AdamW with decoupled weight decay and bias correction, in one pass. With g = gradient_scale *
// grad:
//   m = beta1 m + (1-beta1) g;  s = beta2 s + (1-beta2) g^2
//   w -= rate (decay w + m / (1-beta1^step) / (sqrt(s / (1-beta2^step)) + epsilon))
template <class Real>
struct AdamwStep {
    Real* weight;
    Real* first_moment;
    Real* second_moment;
    const Real* gradient;
    std::int64_t count;
    std::int64_t step;  // 1 for the first update.
    double learning_rate;
    double beta1;
    double beta2;
    double epsilon;
    double weight_decay;
    double gradient_scale;  // Clipping, and whatever else multiplies the gradient.
};

// *sum += x . x, in double and in an order that only `count` decides.
template <class Real>
struct SumOfSquares {
    double* sum;
    const Real* x;
    std::int64_t count;
};

// Thread-safe: an implementation holds no state that calls share.
template <class Real>
class Ops {
  public:
    virtual ~Ops() = default;

    virtual void embedding(const EmbeddingForward<Real>& args) = 0;
    virtual void embedding(const EmbeddingBackward<Real>& args) = 0;
    virtual void layer_norm(const LayerNormForward<Real>& args) = 0;
    virtual void layer_norm(const LayerNormBackward<Real>& args) = 0;
    virtual void rms_norm(const RmsNormForward<Real>& args) = 0;
    virtual void rms_norm(const RmsNormBackward<Real>& args) = 0;
    virtual void linear(const LinearForward<Real>& args) = 0;
    virtual void linear(const LinearBackward<Real>& args) = 0;
    virtual void rope(const Rope<Real>& args) = 0;
    virtual void attention(const AttentionForward<Real>& args) = 0;
    virtual void attention(const AttentionBackward<Real>& args) = 0;
    virtual void gelu(const GeluForward<Real>& args) = 0;
    virtual void gelu(const GeluBackward<Real>& args) = 0;
    virtual void swiglu(const SwigluForward<Real>& args) = 0;
    virtual void swiglu(const SwigluBackward<Real>& args) = 0;
    virtual void add(const Add<Real>& args) = 0;
    virtual void cross_entropy(const CrossEntropy<Real>& args) = 0;
    virtual void adamw(const AdamwStep<Real>& args) = 0;
    virtual void sum_of_squares(const SumOfSquares<Real>& args) = 0;

    // Elements of scratch that both directions of attention need at these sizes, whatever b is.
    virtual std::int64_t attention_scratch_count(std::int64_t t, std::int64_t h, std::int64_t g,
                                                 std::int64_t d) const = 0;

    // Returns when every call made so far is done; until then only an implementation that works
    // asynchronously still needs the arguments. Those that are here now work at once.
    virtual void finish() = 0;
};

// Real is float or double.
template <class Real>
std::unique_ptr<Ops<Real>> make_reference_ops();

// Threads are OpenMP's: set OMP_NUM_THREADS, and OMP_WAIT_POLICY=passive where cores are shared.
std::unique_ptr<Ops<float>> make_cpu_ops();

// How many threads the cpu kernels use; changed only before they are made.
int cpu_thread_count();
void use_cpu_threads(int count);

// One line for the log: "AVX2, 2 threads".
std::string describe_cpu();

}  // namespace gruca::kernels
