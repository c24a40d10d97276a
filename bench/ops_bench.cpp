// How fast the operations are, in the shapes of one training step of a GPT-2 shaped model:
//
//   ops_bench [--tiny] [--json] [--width C] [--layers L] [--time T] [--batch B] [--words V]
//             [--head D]
//
// A row is an operation: its best time of several, times its calls a step, and its speed. The last
// row adds them up: what a step would take if nothing but operations cost time.

#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "kernels/ops.h"
#include "tensor/buffer.h"

namespace {

using namespace gruca;
using namespace gruca::kernels;
using tensor::Buffer;

struct Model {
    std::int64_t c = 256;
    std::int64_t layers = 4;
    std::int64_t t = 128;
    std::int64_t b = 16;
    std::int64_t v = 8192;
    std::int64_t head = 32;
    std::int64_t n() const { return b * t; }
    std::int64_t parameters() const { return (v + t) * c + layers * 12 * c * c; }
};

struct Row {
    std::string name;
    std::int64_t calls;
    double flops;  // Of one call.
    double bytes;
    std::function<void()> call;
};

Buffer<float> random_buffer(std::int64_t count, double size) {
    Buffer<float> buffer(count);
    const Philox philox(1, static_cast<std::uint64_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        buffer[i] = static_cast<float>(size * philox.normal(static_cast<std::uint64_t>(i)));
    }
    return buffer;
}

// Of the wall, or with one thread of this thread alone, so that other processes do not count.
double now_s() {
    const bool alone = omp_get_max_threads() == 1;
    timespec now;
    clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double best_seconds(const std::function<void()>& call, double budget_s) {
    call();
    double best = 1e9;
    const double start = now_s();
    do {
        const double before = now_s();
        call();
        best = std::min(best, now_s() - before);
    } while (now_s() - start < budget_s);
    return best;
}

// The memory all rows work on, and the rows.
class Step {
  public:
    explicit Step(Model model) : m(model) {
        linear("qkv", m.n(), m.c, 3 * m.c, m.layers);
        linear("projection", m.n(), m.c, m.c, m.layers);
        linear("expand", m.n(), m.c, 4 * m.c, m.layers);
        linear("contract", m.n(), 4 * m.c, m.c, m.layers);
        linear("head", rows(), m.c, m.v, m.n() / rows());
        attention();
        norm();
        gelu();
        loss();
        small();
        optimizer();
    }

    const std::vector<Row>& all() const { return rows_; }

  private:
    // Of logits at once, as the trainer's head walks them.
    std::int64_t rows() const {
        return std::min(std::max<std::int64_t>((1 << 21) / m.v, 256), m.n());
    }

    void row(std::string name, std::int64_t calls, double flops, std::int64_t floats,
             std::function<void()> call) {
        rows_.push_back({std::move(name), calls, flops, 4.0 * static_cast<double>(floats), call});
    }

    void linear(const std::string& name, std::int64_t n, std::int64_t i, std::int64_t o,
                std::int64_t calls) {
        const double flops = 2.0 * static_cast<double>(n * i * o);
        const std::int64_t floats = n * i + o * i + n * o;
        row(name, calls, flops, floats, [=, this] {
            ops->linear(LinearForward<float>{.y_no = y.data(),
                                             .x_ni = x.data(),
                                             .weight_oi = weight.data(),
                                             .bias_o = bias.data(),
                                             .n = n,
                                             .i = i,
                                             .o = o});
        });
        const LinearBackward<float> backward = {.dy_no = y.data(),
                                                .x_ni = x.data(),
                                                .weight_oi = weight.data(),
                                                .n = n,
                                                .i = i,
                                                .o = o,
                                                .accumulate_dx = false};
        row(name + " dx", calls, flops, floats, [=, this] {
            auto args = backward;
            args.dx_ni = dx.data();
            ops->linear(args);
        });
        row(name + " dweight", calls, flops, floats, [=, this] {
            auto args = backward;
            args.dweight_oi = dweight.data();
            args.dbias_o = dbias.data();
            ops->linear(args);
        });
    }

    void attention() {
        const std::int64_t h = m.c / m.head;
        const double flops = 2.0 * static_cast<double>(m.n() * m.t * m.c);  // Causal half.
        row("attention", m.layers, flops, 4 * m.n() * m.c, [=, this] {
            ops->attention(AttentionForward<float>{.out_nhd = y.data(),
                                                   .lse_bht = lse.data(),
                                                   .q_nhd = x.data(),
                                                   .k_ngd = x.data() + m.c,
                                                   .v_ngd = x.data() + 2 * m.c,
                                                   .q_stride = 3 * m.c,
                                                   .k_stride = 3 * m.c,
                                                   .v_stride = 3 * m.c,
                                                   .b = m.b,
                                                   .t = m.t,
                                                   .h = h,
                                                   .g = h,
                                                   .d = m.head,
                                                   .scale = 0.2,
                                                   .scratch = scratch.span()});
        });
        row("attention backward", m.layers, 2.5 * flops, 8 * m.n() * m.c, [=, this] {
            ops->attention(AttentionBackward<float>{.dq_nhd = dx.data(),
                                                    .dk_ngd = dx.data() + m.c,
                                                    .dv_ngd = dx.data() + 2 * m.c,
                                                    .dout_nhd = weight.data(),
                                                    .out_nhd = y.data(),
                                                    .lse_bht = lse.data(),
                                                    .q_nhd = x.data(),
                                                    .k_ngd = x.data() + m.c,
                                                    .v_ngd = x.data() + 2 * m.c,
                                                    .q_stride = 3 * m.c,
                                                    .k_stride = 3 * m.c,
                                                    .v_stride = 3 * m.c,
                                                    .b = m.b,
                                                    .t = m.t,
                                                    .h = h,
                                                    .g = h,
                                                    .d = m.head,
                                                    .scale = 0.2,
                                                    .scratch = scratch.span()});
        });
    }

    void norm() {
        row("layer norm", 2 * m.layers + 1, 0, 2 * m.n() * m.c, [this] {
            ops->layer_norm(LayerNormForward<float>{.y_nc = y.data(),
                                                    .mean_n = mean.data(),
                                                    .rstd_n = rstd.data(),
                                                    .x_nc = x.data(),
                                                    .weight_c = weight.data(),
                                                    .bias_c = bias.data(),
                                                    .n = m.n(),
                                                    .c = m.c,
                                                    .epsilon = 1e-5});
        });
        row("layer norm backward", 2 * m.layers + 1, 0, 4 * m.n() * m.c, [this] {
            ops->layer_norm(LayerNormBackward<float>{.dx_nc = dx.data(),
                                                     .dweight_c = dweight.data(),
                                                     .dbias_c = dbias.data(),
                                                     .dy_nc = y.data(),
                                                     .x_nc = x.data(),
                                                     .weight_c = weight.data(),
                                                     .mean_n = mean.data(),
                                                     .rstd_n = rstd.data(),
                                                     .n = m.n(),
                                                     .c = m.c,
                                                     .accumulate_dx = true});
        });
    }

    void gelu() {
        const std::int64_t count = m.n() * 4 * m.c;
        row("gelu", m.layers, 0, 2 * count, [=, this] {
            ops->gelu(GeluForward<float>{.y = y.data(), .x = x.data(), .count = count});
        });
        row("gelu backward", m.layers, 0, 3 * count, [=, this] {
            ops->gelu(GeluBackward<float>{
                .dx = dx.data(), .dy = y.data(), .x = x.data(), .count = count});
        });
    }

    void loss() {
        row("cross entropy", m.n() / rows(), 0, 2 * rows() * m.v, [this] {
            double sum = 0;
            std::int64_t count = 0;
            ops->cross_entropy(CrossEntropy<float>{.loss_n = mean.data(),
                                                   .dlogits_nv = y.data(),
                                                   .loss_sum = &sum,
                                                   .target_count = &count,
                                                   .logits_nv = x.data(),
                                                   .target_n = tokens.data(),
                                                   .n = rows(),
                                                   .v = m.v,
                                                   .dloss = 1e-3});
        });
    }

    void small() {
        row("embedding", 1, 0, 2 * m.n() * m.c, [this] {
            ops->embedding(EmbeddingForward<float>{.y_nc = y.data(),
                                                   .token_n = tokens.data(),
                                                   .token_weight_vc = weight.data(),
                                                   .b = m.b,
                                                   .t = m.t,
                                                   .c = m.c,
                                                   .v = m.v});
        });
        row("embedding backward", 1, 0, 3 * m.n() * m.c, [this] {
            ops->embedding(EmbeddingBackward<float>{.dtoken_weight_vc = dweight.data(),
                                                    .dy_nc = y.data(),
                                                    .token_n = tokens.data(),
                                                    .b = m.b,
                                                    .t = m.t,
                                                    .c = m.c,
                                                    .v = m.v});
        });
        row("add", 2 * m.layers, 0, 3 * m.n() * m.c, [this] {
            ops->add(
                Add<float>{.y = dx.data(), .a = x.data(), .b = y.data(), .count = m.n() * m.c});
        });
    }

    void optimizer() {
        row("sum of squares", 1, 0, m.parameters(), [this] {
            double sum = 0;
            ops->sum_of_squares(
                SumOfSquares<float>{.sum = &sum, .x = gradients.data(), .count = m.parameters()});
        });
        row("adamw", 1, 0, 7 * m.parameters(), [this] {
            ops->adamw(AdamwStep<float>{.weight = parameters.data(),
                                        .first_moment = first.data(),
                                        .second_moment = second.data(),
                                        .gradient = gradients.data(),
                                        .count = m.parameters(),
                                        .step = 1,
                                        .learning_rate = 1e-3,
                                        .beta1 = 0.9,
                                        .beta2 = 0.95,
                                        .epsilon = 1e-8,
                                        .weight_decay = 0.1,
                                        .gradient_scale = 1});
        });
    }

    std::int64_t widest() const { return std::max(m.n() * 4 * m.c, rows() * m.v); }

    const Model m;
    const std::unique_ptr<Ops<float>> ops = make_cpu_ops();
    const std::int64_t weights = std::max({4 * m.c * m.c, m.v* m.c, m.n() * m.c});
    Buffer<float> x = random_buffer(widest(), 1);
    Buffer<float> y = random_buffer(widest(), 1);
    Buffer<float> dx = random_buffer(widest(), 1);
    Buffer<float> weight = random_buffer(weights, 0.05);
    Buffer<float> dweight = random_buffer(weights, 0.05);
    Buffer<float> bias = random_buffer(std::max(4 * m.c, m.v), 0.1);
    Buffer<float> dbias = random_buffer(std::max(4 * m.c, m.v), 0.1);
    Buffer<float> mean = random_buffer(m.n(), 0.1);
    Buffer<float> rstd = random_buffer(m.n(), 0.1);
    Buffer<float> lse = random_buffer(m.n() * m.c, 1);
    Buffer<float> scratch{ops->attention_scratch_count(m.t, m.c / m.head, m.c / m.head, m.head)};
    Buffer<float> parameters = random_buffer(m.parameters(), 0.05);
    Buffer<float> gradients = random_buffer(m.parameters(), 0.01);
    Buffer<float> first{m.parameters()};
    Buffer<float> second{m.parameters()};
    std::vector<std::int32_t> tokens = [this] {
        std::vector<std::int32_t> some(static_cast<std::size_t>(m.n()));
        for (std::size_t i = 0; i < some.size(); ++i) {
            some[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(m.v));
        }
        return some;
    }();
    std::vector<Row> rows_;
};

struct Options {
    Model model = {};
    bool json = false;
    double budget_s = 0.2;  // Of each row.
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        const auto number = [&] { return i + 1 < argc ? std::atoll(argv[++i]) : 0; };
        if (name == "--tiny") {
            options.model = {.c = 64, .layers = 1, .t = 16, .b = 2, .v = 64};
            options.budget_s = 0.001;
        } else if (name == "--json") {
            options.json = true;
        } else if (name == "--width") {
            options.model.c = number();
        } else if (name == "--layers") {
            options.model.layers = number();
        } else if (name == "--time") {
            options.model.t = number();
        } else if (name == "--batch") {
            options.model.b = number();
        } else if (name == "--head") {
            options.model.head = number();
        } else if (name == "--words") {
            options.model.v = number();
        } else {
            fmt::print(stderr, "unknown option: {}\n", name);
            std::exit(2);
        }
    }
    return options;
}

void print_figure(std::string_view figure, double value, std::string_view unit) {
    fmt::print("{{\"figure\": \"{}\", \"value\": {:.4g}, \"unit\": \"{}\", \"machine\": \"{}\"}}\n",
               figure, value, unit, describe_cpu());
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    const Model& m = options.model;
    Step step(m);
    double total_s = 0;
    double product_s = 0;
    double product_flops = 0;
    if (!options.json) {
        fmt::print("{}; width {}, {} layers, {} x {} tokens, {} words\n", describe_cpu(), m.c,
                   m.layers, m.b, m.t, m.v);
        fmt::print("{:<22}{:>7}{:>10}{:>8}{:>8}\n", "operation", "calls", "ms/step", "GF/s",
                   "GB/s");
    }
    for (const Row& row : step.all()) {
        const double seconds = best_seconds(row.call, options.budget_s);
        const double calls = static_cast<double>(row.calls);
        total_s += calls * seconds;
        if (row.flops > 0) {
            product_s += calls * seconds;
            product_flops += calls * row.flops;
        }
        if (options.json) continue;
        fmt::print("{:<22}{:>7}{:>10.2f}{:>8.0f}{:>8.1f}\n", row.name, row.calls,
                   1e3 * calls * seconds, row.flops / seconds / 1e9, row.bytes / seconds / 1e9);
    }
    const double tokens_per_s = static_cast<double>(m.n()) / total_s;
    if (options.json) {
        print_figure("ops_product_gflops", product_flops / product_s / 1e9, "GF/s");
        print_figure("ops_step_tokens_per_s", tokens_per_s, "tokens/s");
    } else {
        fmt::print("{:<22}{:>7}{:>10.2f}{:>8.0f}  {:.0f} tokens/s\n", "step", 1, 1e3 * total_s,
                   product_flops / product_s / 1e9, tokens_per_s);
    }
    return 0;
}
