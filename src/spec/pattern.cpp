#include "spec/pattern.h"

#include <wctype.h>

#include <locale.h>
#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace gruca::spec {
namespace {

constexpr char32_t kCodePointMax = 0x10FFFF;
constexpr std::size_t kUnbounded = static_cast<std::size_t>(-1);

locale_t utf8_locale() {
    static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    CHECK(locale != nullptr, "the C library has no locale C.UTF-8");
    return locale;
}

bool is_in(const char* wide_class, char32_t c) {
    const locale_t locale = utf8_locale();
    return iswctype_l(static_cast<wint_t>(c), wctype_l(wide_class, locale), locale) != 0;
}

// An expression as a tree: `parts` in sequence, or alternatives of it, repeated min..max times.
struct Expression {
    enum class Kind { set, sequence, alternatives, repeat } kind;
    Pattern::Set set = {};
    std::vector<Expression> parts = {};
    std::size_t min = 1;
    std::size_t max = 1;
};

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    Expression parse() {
        if (text_.starts_with('^')) text_.remove_prefix(1);
        if (text_.ends_with('$')) text_.remove_suffix(1);
        Expression whole = alternatives();
        CHECK(text_.empty(), "pattern has an unexpected end: '{}'", text_);
        return whole;
    }

  private:
    char take() {
        CHECK(!text_.empty(), "pattern ends in the middle");
        const char c = text_.front();
        text_.remove_prefix(1);
        return c;
    }
    bool take_if(std::string_view next) {
        if (!text_.starts_with(next)) return false;
        text_.remove_prefix(next.size());
        return true;
    }

    Expression alternatives() {
        Expression all{.kind = Expression::Kind::alternatives};
        do {
            all.parts.push_back(sequence());
        } while (take_if("|"));
        return all.parts.size() == 1 ? std::move(all.parts.front()) : std::move(all);
    }

    Expression sequence() {
        Expression all{.kind = Expression::Kind::sequence};
        while (!text_.empty() && text_.front() != '|' && text_.front() != ')') {
            all.parts.push_back(repeated(atom()));
        }
        return all;
    }

    Expression repeated(Expression atom) {
        Expression repeat{.kind = Expression::Kind::repeat};
        if (take_if("*")) {
            repeat.min = 0, repeat.max = kUnbounded;
        } else if (take_if("+")) {
            repeat.max = kUnbounded;
        } else if (take_if("?")) {
            repeat.min = 0;
        } else if (take_if("{")) {
            repeat.min = number();
            repeat.max = !take_if(",") ? repeat.min : text_.front() == '}' ? kUnbounded : number();
            CHECK(take() == '}', "pattern has a repeat without an end");
        } else {
            return atom;
        }
        repeat.parts.push_back(std::move(atom));
        return repeat;
    }

    std::size_t number() {
        std::size_t value = 0;
        while (text_.front() >= '0' && text_.front() <= '9') {
            value = value * 10 + static_cast<std::size_t>(take() - '0');
        }
        return value;
    }

    Expression atom() {
        if (take_if("(")) {
            CHECK(take_if("?:") || text_.front() != '?', "pattern looks around: '{}'", text_);
            Expression group = alternatives();
            CHECK(take() == ')', "pattern has a group without an end");
            return group;
        }
        Expression one{.kind = Expression::Kind::set};
        const char c = take();
        if (c == '[') {
            one.set = bracket();
        } else if (c == '.') {  // Everything but line ends, as Java's.
            one.set.negated = true;
            one.set.ranges = {{'\n', '\n'}, {'\r', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}};
        } else if (c == '\\') {
            escape(one.set);
        } else {
            add(one.set, c, c);
        }
        return one;
    }

    Pattern::Set bracket() {
        Pattern::Set set;
        set.negated = take_if("^");
        while (!take_if("]")) {
            const char c = take();
            if (c == '\\') {
                escape(set);
            } else if (text_.size() > 1 && text_[0] == '-' && text_[1] != ']') {
                take();
                add(set, c, take());
            } else {
                add(set, c, c);
            }
        }
        return set;
    }

    void escape(Pattern::Set& set) {
        const char c = take();
        if (c == 'd') {
            add(set, '0', '9');
        } else if (c == 'w' || (c == 'p' && take_if("{Alnum}"))) {
            add(set, '0', '9'), add(set, 'a', 'z'), add(set, 'A', 'Z');
            if (c == 'w') add(set, '_', '_');
        } else if (c == 's') {
            add(set, '\t', '\r'), add(set, ' ', ' ');
        } else if (c == 'S') {
            set.ranges.insert(set.ranges.end(), {{0, 8}, {14, 31}, {33, kCodePointMax}});
        } else if (c == 'p') {
            if (take_if("{L}")) {
                set.letters = true;
            } else if (take_if("{Z}")) {
                set.separators = true;
            } else {
                CHECK(take_if("{N}"), "pattern has an unknown class: '{}'", text_);
                set.numbers = true;
            }
        } else {
            CHECK(!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9'),
                  "pattern has an unknown escape: '{}'", c);
            add(set, c, c);
        }
    }

    static void add(Pattern::Set& set, char first, char last) {
        set.ranges.push_back({static_cast<unsigned char>(first), static_cast<unsigned char>(last)});
    }

    std::string_view text_;
};

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
    emit(Parser(expression).parse(), sets_, steps_);
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
