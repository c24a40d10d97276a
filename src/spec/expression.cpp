#include "spec/expression.h"

#include "base/check.h"

namespace gruca::spec {
namespace {

constexpr char32_t kCodePointMax = 0x10FFFF;

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

}  // namespace

Expression parse_expression(std::string_view text) {
    return Parser(text).parse();
}

}  // namespace gruca::spec
