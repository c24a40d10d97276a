// The matrix products of linear layers, ours beside oneDNN's sgemm, on one thread:
//
//   product_bench [--tiny] [--json]
//
// A row is a shape; forward, input gradient and weight gradient in GF/s, best of several.

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "kernels/ops.h"
#include "tensor/buffer.h"

namespace {

using namespace gruca;
using namespace gruca::kernels;
using tensor::Buffer;

struct Shape {
    std::int64_t n;
    std::int64_t i;
    std::int64_t o;
};

// Of this thread alone, so that other processes do not count.
double now_s() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
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

// Forward, input gradient, weight gradient: ours and the peer's.
struct Products {
    std::vector<std::function<void()>> ours;
    std::vector<std::function<void()>> peers;
};

struct Operands {
    Shape s;
    Buffer<float> x{s.n * s.i};
    Buffer<float> weight{s.o * s.i};
    Buffer<float> y{s.n * s.o};
    Buffer<float> dx{s.n * s.i};
    Buffer<float> dweight{s.o * s.i};
};

Products products(Ops<float>& ops, Operands& m) {
    const Shape s = m.s;
    const LinearBackward<float> backward = {.dy_no = m.y.data(),
                                            .x_ni = m.x.data(),
                                            .weight_oi = m.weight.data(),
                                            .n = s.n,
                                            .i = s.i,
                                            .o = s.o,
                                            .accumulate_dx = false};
    auto input = backward;
    input.dx_ni = m.dx.data();
    auto weights = backward;
    weights.dweight_oi = m.dweight.data();
    const LinearForward<float> forward = {.y_no = m.y.data(),
                                          .x_ni = m.x.data(),
                                          .weight_oi = m.weight.data(),
                                          .n = s.n,
                                          .i = s.i,
                                          .o = s.o};
    return {{[=, &ops] { ops.linear(forward); }, [=, &ops] { ops.linear(input); },
             [=, &ops] { ops.linear(weights); }},
            {[=, &m] {
                 dnnl_sgemm('N', 'T', s.n, s.o, s.i, 1, m.x.data(), s.i, m.weight.data(), s.i, 0,
                            m.y.data(), s.o);
             },
             [=, &m] {
                 dnnl_sgemm('N', 'N', s.n, s.i, s.o, 1, m.y.data(), s.o, m.weight.data(), s.i, 0,
                            m.dx.data(), s.i);
             },
             [=, &m] {
                 dnnl_sgemm('T', 'N', s.o, s.i, s.n, 1, m.y.data(), s.o, m.x.data(), s.i, 1,
                            m.dweight.data(), s.i);
             }}};
}

void print_json(std::string_view figure, double ours, double peer) {
    fmt::print(
        "{{\"figure\": \"{}\", \"value\": {:.4g}, \"unit\": \"GF/s\", \"peer\": \"oneDNN "
        "sgemm\", \"peer_value\": {:.4g}, \"ratio\": {:.3g}, \"machine\": \"{}\"}}\n",
        figure, ours, peer, ours / peer, describe_cpu());
}

}  // namespace

int main(int argc, char** argv) {
    bool tiny = false;
    bool json = false;
    for (int i = 1; i < argc; ++i) {
        tiny = tiny || std::string_view(argv[i]) == "--tiny";
        json = json || std::string_view(argv[i]) == "--json";
    }
    omp_set_num_threads(1);
    const auto ops = make_cpu_ops();
    const std::vector<Shape> shapes =
        tiny ? std::vector<Shape>{{8, 5, 3}}
             : std::vector<Shape>{{1024, 128, 384},  {1024, 128, 8192}, {2048, 256, 768},
                                  {2048, 256, 1024}, {2048, 1024, 256}, {1024, 256, 8192},
                                  {2048, 384, 1536}, {2048, 768, 3072}};
    if (!json) {
        fmt::print("{}\n{:<20}{:>22}{:>22}\n", describe_cpu(), "rows, in, out",
                   "ours: y, dx, dweight", "oneDNN");
    }
    double log_ours = 0;  // Geometric means over all products.
    double log_peers = 0;
    for (const Shape& s : shapes) {
        Operands operands{.s = s};
        std::fill_n(operands.x.data(), operands.x.size(), 0.5f);
        std::fill_n(operands.weight.data(), operands.weight.size(), 0.25f);
        const Products all = products(*ops, operands);
        const double gigaflops = 2e-9 * static_cast<double>(s.n * s.i * s.o);
        std::vector<double> speeds;
        for (const auto& call : all.ours) {
            speeds.push_back(gigaflops / best_seconds(call, tiny ? 0 : 0.2));
            log_ours += std::log(speeds.back());
        }
        for (const auto& call : all.peers) {
            speeds.push_back(gigaflops / best_seconds(call, tiny ? 0 : 0.2));
            log_peers += std::log(speeds.back());
        }
        if (json) continue;
        fmt::print("{:<20}{:>8.0f}{:>7.0f}{:>7.0f}{:>8.0f}{:>7.0f}{:>7.0f}\n",
                   fmt::format("{}, {}, {}", s.n, s.i, s.o), speeds[0], speeds[1], speeds[2],
                   speeds[3], speeds[4], speeds[5]);
    }
    const double count = 3.0 * static_cast<double>(shapes.size());
    const double ours = std::exp(log_ours / count);
    const double peers = std::exp(log_peers / count);
    if (json) {
        print_json("product_gflops", ours, peers);
    } else {
        fmt::print("{:<20}{:>15.0f}{:>22.0f}\n", "geometric mean", ours, peers);
    }
    return 0;
}
