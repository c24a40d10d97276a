#include "spec/pattern.h"

#include <wctype.h>

#include <locale.h>
#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "spec/expression.h"

namespace gruca::spec {
namespace {

locale_t utf8_locale() {
    static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    CHECK(locale != nullptr, "the C library has no locale C.UTF-8");
    return locale;
}

bool is_in(const char* wide_class, char32_t c) {
    const locale_t locale = utf8_locale();
    return iswctype_l(static_cast<wint_t>(c), wctype_l(wide_class, locale), locale) != 0;
}

void emit(const Expression& expression, std::vector<Pattern::Set>& sets,
          std::vector<Pattern::Step>& steps);

void emit_repeat(const Expression& repeat, std::vector<Pattern::Set>& sets,
                 std::vector<Pattern::Step>& steps) {
    const Expression& body = repeat.parts.front();
    for (std::size_t i = 0; i < repeat.min; ++i) emit(body, sets, steps);
    if (repeat.max == kUnbounded) {
        const std::size_t fork = steps.size();
        steps.push_back({Pattern::Op::fork, fork + 1});
        emit(body, sets, steps);
        steps.push_back({Pattern::Op::jump, fork});
        steps[fork].other = steps.size();
        return;
    }
    std::vector<std::size_t> exits;
    for (std::size_t i = repeat.min; i < repeat.max; ++i) {
        exits.push_back(steps.size());
        steps.push_back({Pattern::Op::fork, steps.size() + 1});
        emit(body, sets, steps);
    }
    for (const std::size_t fork : exits) steps[fork].other = steps.size();
}

void emit_alternatives(const Expression& all, std::vector<Pattern::Set>& sets,
                       std::vector<Pattern::Step>& steps) {
    std::vector<std::size_t> exits;
    for (std::size_t i = 0; i < all.parts.size(); ++i) {
        const bool last = i + 1 == all.parts.size();
        const std::size_t fork = steps.size();
        if (!last) steps.push_back({Pattern::Op::fork, fork + 1});
        emit(all.parts[i], sets, steps);
        if (last) break;
        exits.push_back(steps.size());
        steps.push_back({Pattern::Op::jump});
        steps[fork].other = steps.size();
    }
    for (const std::size_t jump : exits) steps[jump].to = steps.size();
}

void emit(const Expression& expression, std::vector<Pattern::Set>& sets,
          std::vector<Pattern::Step>& steps) {
    switch (expression.kind) {
        case Expression::Kind::set:
            steps.push_back({Pattern::Op::take, sets.size()});
            sets.push_back(expression.set);
            break;
        case Expression::Kind::sequence:
            for (const Expression& part : expression.parts) emit(part, sets, steps);
            break;
        case Expression::Kind::alternatives:
            emit_alternatives(expression, sets, steps);
            break;
        case Expression::Kind::repeat:
            emit_repeat(expression, sets, steps);
            break;
    }
}

// The steps that take a character or are done, reachable from some steps without taking one.
class Front {
  public:
    explicit Front(const std::vector<Pattern::Step>& steps)
        : steps_(&steps), seen_(steps.size(), false) {}

    void add(std::size_t step) {
        pending_.push_back(step);
        while (!pending_.empty()) {
            const std::size_t next = pending_.back();
            pending_.pop_back();
            if (seen_[next]) continue;
            seen_[next] = true;
            const Pattern::Step& what = steps_->at(next);
            if (what.op == Pattern::Op::take || what.op == Pattern::Op::done) {
                waiting_.push_back(next);
            } else {
                pending_.push_back(what.to);
                if (what.op == Pattern::Op::fork) pending_.push_back(what.other);
            }
        }
    }
    void clear() {
        std::fill(seen_.begin(), seen_.end(), false);
        waiting_.clear();
    }
    const std::vector<std::size_t>& waiting() const { return waiting_; }

  private:
    const std::vector<Pattern::Step>* steps_;
    std::vector<bool> seen_;
    std::vector<std::size_t> pending_;
    std::vector<std::size_t> waiting_;
};

}  // namespace

bool Pattern::Set::contains(char32_t c) const {
    bool in = std::any_of(ranges.begin(), ranges.end(),
                          [c](const Range& range) { return range.first <= c && c <= range.last; });
    const bool digit = c >= '0' && c <= '9';
    in = in || (numbers && (digit || (c > 0x7F && is_in("alnum", c))));
    in = in || (letters && !digit && is_in("alnum", c));
    in = in || (separators && (c == ' ' || c == 0xA0 || (c > 0x7F && is_in("space", c))));
    return in != negated;
}

Pattern::Pattern(std::string_view expression) : expression_(expression) {
    emit(parse_expression(expression), sets_, steps_);
    steps_.push_back({Op::done});
}

bool Pattern::matches(std::string_view utf8) const {
    Front now(steps_);
    Front next(steps_);
    now.add(0);
    for (const char32_t c : code_points(utf8)) {
        next.clear();
        for (const std::size_t step : now.waiting()) {
            if (steps_[step].op == Op::take && sets_[steps_[step].to].contains(c)) {
                next.add(step + 1);
            }
        }
        if (next.waiting().empty()) return false;
        std::swap(now, next);
    }
    return std::any_of(now.waiting().begin(), now.waiting().end(),
                       [this](std::size_t step) { return steps_[step].op == Op::done; });
}

std::vector<char32_t> code_points(std::string_view utf8) {
    std::vector<char32_t> points;
    const std::string text = is_utf8(utf8) ? std::string(utf8) : repair_utf8(utf8);
    for (std::size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        char32_t point = length == 1 ? first : first & (0xFFu >> (length + 1));
        for (std::size_t j = 1; j < length; ++j) {
            point = point << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3Fu);
        }
        points.push_back(point);
        i += length;
    }
    return points;
}

std::size_t utf16_length(std::string_view utf8) {
    std::size_t units = 0;
    for (const char32_t point : code_points(utf8)) units += point > 0xFFFF ? 2 : 1;
    return units;
}

}  // namespace gruca::spec
