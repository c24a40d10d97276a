// The plainest loops that are right. Every sum is in double, whatever Real is.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/argument_checks.h"
#include "kernels/ops.h"

namespace gruca::kernels {
namespace {

constexpr double kGeluLinear = 0.7978845608028653558798921198687637;  // sqrt(2/pi)
constexpr double kGeluCubic = 0.044715;

double sigmoid(double x) {
    return 1.0 / (1.0 + std::exp(-x));
}

template <class Real>
void store(Real& into, double value, bool accumulate) {
    into = static_cast<Real>(accumulate ? double{into} + value : value);
}

template <class Real>
class ReferenceOps final : public Ops<Real> {
  public:
    void embedding(const EmbeddingForward<Real>& a) override {
        check_embedding(a);
        for (std::int64_t row = 0; row < a.b * a.t; ++row) {
            for (std::int64_t c = 0; c < a.c; ++c) {
                Real value = a.token_weight_vc[a.token_n[row] * a.c + c];
                if (a.position_weight_tc) value += a.position_weight_tc[row % a.t * a.c + c];
                a.y_nc[row * a.c + c] = value;
            }
        }
    }

    void embedding(const EmbeddingBackward<Real>& a) override {
        check_embedding(a);
        std::vector<double> dtoken(static_cast<std::size_t>(a.v * a.c));
        std::vector<double> dposition(static_cast<std::size_t>(a.t * a.c));
        for (std::int64_t row = 0; row < a.b * a.t; ++row) {
            for (std::int64_t c = 0; c < a.c; ++c) {
                const double dy = double{a.dy_nc[row * a.c + c]};
                dtoken[static_cast<std::size_t>(a.token_n[row] * a.c + c)] += dy;
                dposition[static_cast<std::size_t>(row % a.t * a.c + c)] += dy;
            }
        }
        for (std::int64_t i = 0; i < a.v * a.c; ++i) {
            store(a.dtoken_weight_vc[i], dtoken[static_cast<std::size_t>(i)], true);
        }
        for (std::int64_t i = 0; a.dposition_weight_tc && i < a.t * a.c; ++i) {
            store(a.dposition_weight_tc[i], dposition[static_cast<std::size_t>(i)], true);
        }
    }

    void layer_norm(const LayerNormForward<Real>& a) override {
        check_rows(a);
        const double width = static_cast<double>(a.c);
        for (std::int64_t row = 0; row < a.n; ++row) {
            const Real* x = a.x_nc + row * a.c;
            Real* y = a.y_nc + row * a.c;
            double sum = 0;
            for (std::int64_t c = 0; c < a.c; ++c) sum += double{x[c]};
            const double mean = sum / width;
            double squares = 0;
            for (std::int64_t c = 0; c < a.c; ++c) squares += std::pow(double{x[c]} - mean, 2);
            const double rstd = 1.0 / std::sqrt(squares / width + a.epsilon);
            for (std::int64_t c = 0; c < a.c; ++c) {
                y[c] = static_cast<Real>((double{x[c]} - mean) * rstd * double{a.weight_c[c]} +
                                         double{a.bias_c[c]});
            }
            a.mean_n[row] = static_cast<Real>(mean);
            a.rstd_n[row] = static_cast<Real>(rstd);
        }
    }

    void layer_norm(const LayerNormBackward<Real>& a) override {
        check_rows(a);
        std::vector<double> dweight(static_cast<std::size_t>(a.c));
        std::vector<double> dbias(static_cast<std::size_t>(a.c));
        const double width = static_cast<double>(a.c);
        for (std::int64_t row = 0; row < a.n; ++row) {
            const Real* x = a.x_nc + row * a.c;
            const Real* dy = a.dy_nc + row * a.c;
            const double mean = double{a.mean_n[row]};
            const double rstd = double{a.rstd_n[row]};
            double sum = 0;
            double dot = 0;
            for (std::int64_t c = 0; c < a.c; ++c) {
                const double normal = (double{x[c]} - mean) * rstd;
                sum += double{dy[c]} * double{a.weight_c[c]};
                dot += double{dy[c]} * double{a.weight_c[c]} * normal;
                dweight[static_cast<std::size_t>(c)] += double{dy[c]} * normal;
                dbias[static_cast<std::size_t>(c)] += double{dy[c]};
            }
            for (std::int64_t c = 0; c < a.c; ++c) {
                const double normal = (double{x[c]} - mean) * rstd;
                const double dx = rstd * (double{dy[c]} * double{a.weight_c[c]} - sum / width -
                                          normal * dot / width);
                store(a.dx_nc[row * a.c + c], dx, a.accumulate_dx);
            }
        }
        for (std::int64_t c = 0; c < a.c; ++c) {
            store(a.dweight_c[c], dweight[static_cast<std::size_t>(c)], true);
            store(a.dbias_c[c], dbias[static_cast<std::size_t>(c)], true);
        }
    }

    void rms_norm(const RmsNormForward<Real>& a) override {
        check_rows(a);
        for (std::int64_t row = 0; row < a.n; ++row) {
            const Real* x = a.x_nc + row * a.c;
            double squares = 0;
            for (std::int64_t c = 0; c < a.c; ++c) squares += double{x[c]} * double{x[c]};
            const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(a.c) + a.epsilon);
            for (std::int64_t c = 0; c < a.c; ++c) {
                a.y_nc[row * a.c + c] =
                    static_cast<Real>(double{x[c]} * rstd * double{a.weight_c[c]});
            }
            a.rstd_n[row] = static_cast<Real>(rstd);
        }
    }

    void rms_norm(const RmsNormBackward<Real>& a) override {
        check_rows(a);
        std::vector<double> dweight(static_cast<std::size_t>(a.c));
        for (std::int64_t row = 0; row < a.n; ++row) {
            const Real* x = a.x_nc + row * a.c;
            const Real* dy = a.dy_nc + row * a.c;
            const double rstd = double{a.rstd_n[row]};
            double dot = 0;
            for (std::int64_t c = 0; c < a.c; ++c) {
                const double normal = double{x[c]} * rstd;
                dot += double{dy[c]} * double{a.weight_c[c]} * normal;
                dweight[static_cast<std::size_t>(c)] += double{dy[c]} * normal;
            }
            for (std::int64_t c = 0; c < a.c; ++c) {
                const double normal = double{x[c]} * rstd;
                const double dx = rstd * (double{dy[c]} * double{a.weight_c[c]} -
                                          normal * dot / static_cast<double>(a.c));
                store(a.dx_nc[row * a.c + c], dx, a.accumulate_dx);
            }
        }
        for (std::int64_t c = 0; c < a.c; ++c) {
            store(a.dweight_c[c], dweight[static_cast<std::size_t>(c)], true);
        }
    }

    void linear(const LinearForward<Real>& a) override {
        check_linear(a);
        for (std::int64_t n = 0; n < a.n; ++n) {
            for (std::int64_t o = 0; o < a.o; ++o) {
                double sum = a.bias_o ? double{a.bias_o[o]} : 0.0;
                for (std::int64_t i = 0; i < a.i; ++i) {
                    sum += double{a.x_ni[n * a.i + i]} * double{a.weight_oi[o * a.i + i]};
                }
                a.y_no[n * a.o + o] = static_cast<Real>(sum);
            }
        }
    }

    void linear(const LinearBackward<Real>& a) override {
        check_linear(a);
        for (std::int64_t n = 0; a.dx_ni && n < a.n; ++n) {
            for (std::int64_t i = 0; i < a.i; ++i) {
                double sum = 0;
                for (std::int64_t o = 0; o < a.o; ++o) {
                    sum += double{a.dy_no[n * a.o + o]} * double{a.weight_oi[o * a.i + i]};
                }
                store(a.dx_ni[n * a.i + i], sum, a.accumulate_dx);
            }
        }
        for (std::int64_t o = 0; o < a.o; ++o) {
            for (std::int64_t i = 0; a.dweight_oi && i < a.i; ++i) {
                double sum = 0;
                for (std::int64_t n = 0; n < a.n; ++n) {
                    sum += double{a.dy_no[n * a.o + o]} * double{a.x_ni[n * a.i + i]};
                }
                store(a.dweight_oi[o * a.i + i], sum, true);
            }
            if (!a.dbias_o) continue;
            double sum = 0;
            for (std::int64_t n = 0; n < a.n; ++n) sum += double{a.dy_no[n * a.o + o]};
            store(a.dbias_o[o], sum, true);
        }
    }

    void rope(const Rope<Real>& a) override {
        check_rope(a);
        const std::int64_t half = a.d / 2;
        for (std::int64_t row = 0; row < a.b * a.t; ++row) {
            for (std::int64_t h = 0; h < a.h; ++h) {
                Real* x = a.x_nhd + row * a.stride + h * a.d;
                for (std::int64_t k = 0; k < half; ++k) {
                    const double cosine = double{a.cos_tk[row % a.t * half + k]};
                    const double sine =
                        double{a.sin_tk[row % a.t * half + k]} * (a.inverse ? -1.0 : 1.0);
                    const double first = double{x[k]};
                    const double second = double{x[k + half]};
                    x[k] = static_cast<Real>(first * cosine - second * sine);
                    x[k + half] = static_cast<Real>(second * cosine + first * sine);
                }
            }
        }
    }

    void attention(const AttentionForward<Real>& a) override;
    void attention(const AttentionBackward<Real>& a) override;

    void gelu(const GeluForward<Real>& a) override {
        for (std::int64_t i = 0; i < a.count; ++i) {
            const double x = double{a.x[i]};
            const double inner = kGeluLinear * (x + kGeluCubic * x * x * x);
            a.y[i] = static_cast<Real>(0.5 * x * (1.0 + std::tanh(inner)));
        }
    }

    void gelu(const GeluBackward<Real>& a) override {
        for (std::int64_t i = 0; i < a.count; ++i) {
            const double x = double{a.x[i]};
            const double tanh = std::tanh(kGeluLinear * (x + kGeluCubic * x * x * x));
            const double slope = kGeluLinear * (1.0 + 3.0 * kGeluCubic * x * x);
            const double derivative = 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * slope;
            a.dx[i] = static_cast<Real>(double{a.dy[i]} * derivative);
        }
    }

    void swiglu(const SwigluForward<Real>& a) override {
        for (std::int64_t i = 0; i < a.count; ++i) {
            const double gate = double{a.gate[i]};
            a.y[i] = static_cast<Real>(gate * sigmoid(gate) * double{a.up[i]});
        }
    }

    void swiglu(const SwigluBackward<Real>& a) override {
        for (std::int64_t i = 0; i < a.count; ++i) {
            const double gate = double{a.gate[i]};
            const double up = double{a.up[i]};
            const double dy = double{a.dy[i]};
            const double sigma = sigmoid(gate);
            a.dgate[i] = static_cast<Real>(dy * up * sigma * (1.0 + gate * (1.0 - sigma)));
            a.dup[i] = static_cast<Real>(dy * gate * sigma);
        }
    }

    void add(const Add<Real>& a) override {
        for (std::int64_t i = 0; i < a.count; ++i) a.y[i] = a.a[i] + a.b[i];
    }

    void cross_entropy(const CrossEntropy<Real>& a) override;

    void adamw(const AdamwStep<Real>& a) override {
        check_adamw(a);
        const double correction1 = 1.0 - std::pow(a.beta1, static_cast<double>(a.step));
        const double correction2 = 1.0 - std::pow(a.beta2, static_cast<double>(a.step));
        for (std::int64_t i = 0; i < a.count; ++i) {
            const double g = a.gradient_scale * double{a.gradient[i]};
            const double m = a.beta1 * double{a.first_moment[i]} + (1.0 - a.beta1) * g;
            const double s = a.beta2 * double{a.second_moment[i]} + (1.0 - a.beta2) * g * g;
            const double w = double{a.weight[i]};
            const double direction =
                m / correction1 / (std::sqrt(s / correction2) + a.epsilon) + a.weight_decay * w;
            a.weight[i] = static_cast<Real>(w - a.learning_rate * direction);
            a.first_moment[i] = static_cast<Real>(m);
            a.second_moment[i] = static_cast<Real>(s);
        }
    }

    void sum_of_squares(const SumOfSquares<Real>& a) override {
        double sum = 0;
        for (std::int64_t i = 0; i < a.count; ++i) sum += double{a.x[i]} * double{a.x[i]};
        *a.sum += sum;
    }

    std::int64_t attention_scratch_count(std::int64_t /*t*/, std::int64_t /*h*/, std::int64_t /*g*/,
                                         std::int64_t /*d*/) const override {
        return 0;
    }

    void finish() override {}
};

// The addresses of one head's rows.
template <class Args>
struct Head {
    const Args& a;
    std::int64_t b;
    std::int64_t h;

    std::int64_t row(std::int64_t t) const { return b * a.t + t; }
    std::int64_t group() const { return h / (a.h / a.g); }
    std::int64_t q(std::int64_t t) const { return row(t) * a.q_stride + h * a.d; }
    std::int64_t k(std::int64_t t) const { return row(t) * a.k_stride + group() * a.d; }
    std::int64_t v(std::int64_t t) const { return row(t) * a.v_stride + group() * a.d; }
    std::int64_t out(std::int64_t t) const { return (row(t) * a.h + h) * a.d; }
    std::int64_t lse(std::int64_t t) const { return (b * a.h + h) * a.t + t; }
    std::int64_t first_key(std::int64_t t) const {
        return a.first_key_bt == nullptr ? 0 : a.first_key_bt[row(t)];
    }

    double score(std::int64_t query, std::int64_t key) const {
        double sum = 0;
        for (std::int64_t d = 0; d < a.d; ++d) {
            sum += double{a.q_nhd[q(query) + d]} * double{a.k_ngd[k(key) + d]};
        }
        return sum * a.scale;
    }
};

template <class Real>
void ReferenceOps<Real>::attention(const AttentionForward<Real>& a) {
    check_attention(a, 0);
    std::vector<double> p(static_cast<std::size_t>(a.t));
    for (std::int64_t bh = 0; bh < a.b * a.h; ++bh) {
        const Head<AttentionForward<Real>> head{a, bh / a.h, bh % a.h};
        for (std::int64_t query = 0; query < a.t; ++query) {
            const std::int64_t first = head.first_key(query);
            const auto seen = std::span(p).subspan(static_cast<std::size_t>(first),
                                                   static_cast<std::size_t>(query + 1 - first));
            for (std::size_t i = 0; i < seen.size(); ++i) {
                seen[i] = head.score(query, first + static_cast<std::int64_t>(i));
            }
            const double largest = *std::max_element(seen.begin(), seen.end());
            double sum = 0;
            for (const double score : seen) sum += std::exp(score - largest);
            const double lse = largest + std::log(sum);
            a.lse_bht[head.lse(query)] = static_cast<Real>(lse);
            for (std::int64_t d = 0; d < a.d; ++d) {
                double out = 0;
                for (std::size_t i = 0; i < seen.size(); ++i) {
                    const std::int64_t key = first + static_cast<std::int64_t>(i);
                    out += std::exp(seen[i] - lse) * double{a.v_ngd[head.v(key) + d]};
                }
                a.out_nhd[head.out(query) + d] = static_cast<Real>(out);
            }
        }
    }
}

template <class Real>
void ReferenceOps<Real>::attention(const AttentionBackward<Real>& a) {
    check_attention(a, 0);
    const std::int64_t group_count = a.b * a.t * a.g * a.d;
    std::vector<double> dk(static_cast<std::size_t>(group_count));
    std::vector<double> dv(static_cast<std::size_t>(group_count));
    std::vector<double> dq(static_cast<std::size_t>(a.d));
    for (std::int64_t bh = 0; bh < a.b * a.h; ++bh) {
        const Head<AttentionBackward<Real>> head{a, bh / a.h, bh % a.h};
        const auto packed = [&](std::int64_t key, std::int64_t d) {
            return static_cast<std::size_t>((head.row(key) * a.g + head.group()) * a.d + d);
        };
        for (std::int64_t query = 0; query < a.t; ++query) {
            const Real* dout = a.dout_nhd + head.out(query);
            const Real* out = a.out_nhd + head.out(query);
            double delta = 0;  // sum of p * dp over the keys
            for (std::int64_t d = 0; d < a.d; ++d) delta += double{dout[d]} * double{out[d]};
            std::fill(dq.begin(), dq.end(), 0.0);
            for (std::int64_t key = head.first_key(query); key <= query; ++key) {
                const double p =
                    std::exp(head.score(query, key) - double{a.lse_bht[head.lse(query)]});
                double dp = 0;
                for (std::int64_t d = 0; d < a.d; ++d) {
                    dp += double{dout[d]} * double{a.v_ngd[head.v(key) + d]};
                }
                const double dscore = p * (dp - delta) * a.scale;
                for (std::int64_t d = 0; d < a.d; ++d) {
                    dv[packed(key, d)] += p * double{dout[d]};
                    dk[packed(key, d)] += dscore * double{a.q_nhd[head.q(query) + d]};
                    dq[static_cast<std::size_t>(d)] += dscore * double{a.k_ngd[head.k(key) + d]};
                }
            }
            for (std::int64_t d = 0; d < a.d; ++d) {
                a.dq_nhd[head.q(query) + d] = static_cast<Real>(dq[static_cast<std::size_t>(d)]);
            }
        }
    }
    for (std::int64_t i = 0; i < group_count; ++i) {
        const std::int64_t row = i / (a.g * a.d);
        const std::int64_t column = i % (a.g * a.d);
        a.dk_ngd[row * a.k_stride + column] = static_cast<Real>(dk[static_cast<std::size_t>(i)]);
        a.dv_ngd[row * a.v_stride + column] = static_cast<Real>(dv[static_cast<std::size_t>(i)]);
    }
}

template <class Real>
void ReferenceOps<Real>::cross_entropy(const CrossEntropy<Real>& a) {
    check_cross_entropy(a);
    for (std::int64_t row = 0; row < a.n; ++row) {
        const Real* logits = a.logits_nv + row * a.v;
        const bool ignored = a.target_n[row] == kIgnoredTarget;
        const double largest = double{*std::max_element(logits, logits + a.v)};
        double sum = 0;
        for (std::int64_t v = 0; v < a.v; ++v) sum += std::exp(double{logits[v]} - largest);
        const double lse = largest + std::log(sum);
        const double loss = ignored ? 0.0 : lse - double{logits[a.target_n[row]]};
        for (std::int64_t v = 0; a.dlogits_nv && v < a.v; ++v) {
            const double p = std::exp(double{logits[v]} - lse);
            const double dlogit = p - (v == a.target_n[row] ? 1.0 : 0.0);
            a.dlogits_nv[row * a.v + v] = static_cast<Real>(ignored ? 0.0 : dlogit * a.dloss);
        }
        a.loss_n[row] = static_cast<Real>(loss);
        *a.loss_sum += loss;
        *a.target_count += ignored ? 0 : 1;
    }
}

}  // namespace

template <class Real>
std::unique_ptr<Ops<Real>> make_reference_ops() {
    return std::make_unique<ReferenceOps<Real>>();
}

template std::unique_ptr<Ops<float>> make_reference_ops<float>();
template std::unique_ptr<Ops<double>> make_reference_ops<double>();

}  // namespace gruca::kernels
