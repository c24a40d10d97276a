#include <hwy/targets.h>
#include <omp.h>

#include "kernels/argument_checks.h"
#include "kernels/cpu/kernels.h"

namespace gruca::kernels {
namespace {

class CpuOps final : public Ops<float> {
  public:
    void embedding(const EmbeddingForward<float>& a) override {
        check_embedding(a);
        cpu::embedding(a);
    }
    void embedding(const EmbeddingBackward<float>& a) override {
        check_embedding(a);
        cpu::embedding(a);
    }
    void layer_norm(const LayerNormForward<float>& a) override {
        check_rows(a);
        cpu::layer_norm(a);
    }
    void layer_norm(const LayerNormBackward<float>& a) override {
        check_rows(a);
        cpu::layer_norm(a);
    }
    void rms_norm(const RmsNormForward<float>& a) override {
        check_rows(a);
        cpu::rms_norm(a);
    }
    void rms_norm(const RmsNormBackward<float>& a) override {
        check_rows(a);
        cpu::rms_norm(a);
    }
    void linear(const LinearForward<float>& a) override {
        check_linear(a);
        cpu::linear(a);
    }
    void linear(const LinearBackward<float>& a) override {
        check_linear(a);
        cpu::linear(a);
    }
    void rope(const Rope<float>& a) override {
        check_rope(a);
        cpu::rope(a);
    }
    void attention(const AttentionForward<float>& a) override {
        check_attention(a, cpu::attention_scratch_count(a.t));
        cpu::attention(a);
    }
    void attention(const AttentionBackward<float>& a) override {
        check_attention(a, cpu::attention_scratch_count(a.t));
        cpu::attention(a);
    }
    void gelu(const GeluForward<float>& a) override { cpu::gelu(a); }
    void gelu(const GeluBackward<float>& a) override { cpu::gelu(a); }
    void swiglu(const SwigluForward<float>& a) override { cpu::swiglu(a); }
    void swiglu(const SwigluBackward<float>& a) override { cpu::swiglu(a); }
    void add(const Add<float>& a) override { cpu::add(a); }
    void cross_entropy(const CrossEntropy<float>& a) override {
        check_cross_entropy(a);
        cpu::cross_entropy(a);
    }
    void adamw(const AdamwStep<float>& a) override {
        check_adamw(a);
        cpu::adamw(a);
    }
    void sum_of_squares(const SumOfSquares<float>& a) override { cpu::sum_of_squares(a); }

    std::int64_t attention_scratch_count(std::int64_t t, std::int64_t /*h*/, std::int64_t /*g*/,
                                         std::int64_t /*d*/) const override {
        return cpu::attention_scratch_count(t);
    }

    void finish() override {}
};

std::string instruction_set() {
    const auto available = hwy::SupportedTargets();
    if (available & HWY_AVX3) return "AVX-512";
    if (available & HWY_AVX2) return "AVX2";
    return "no AVX2, so slow";
}

}  // namespace

std::unique_ptr<Ops<float>> make_cpu_ops() {
    return std::make_unique<CpuOps>();
}

int cpu_thread_count() {
    return omp_get_max_threads();
}

void use_cpu_threads(int count) {
    omp_set_num_threads(count);
}

std::string describe_cpu() {
    const int threads = omp_get_max_threads();
    return instruction_set() + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
}

}  // namespace gruca::kernels
