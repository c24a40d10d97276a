#include "cli/arguments.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace gruca::cli {
namespace {

constexpr std::size_t kHelpColumns = 96;
constexpr std::size_t kOptionColumn = 24;
constexpr std::size_t kDigitsMax = 9;

const OptionShape& help_option() {
    static const OptionShape option{.name = "--help", .help = "Print this.", .short_name = "-h"};
    return option;
}

const OptionShape* find_option(const CommandShape& shape, std::string_view word) {
    if (word == help_option().name || word == help_option().short_name) return &help_option();
    const auto found =
        std::find_if(shape.options.begin(), shape.options.end(), [&](const OptionShape& option) {
            return option.name == word || (!word.empty() && option.short_name == word);
        });
    return found == shape.options.end() ? nullptr : &*found;
}

Error usage_error(const CommandShape& shape, const std::string& what) {
    return Error(ErrorCode::invalid_argument, what + "; see: " + shape.name + " --help");
}

Error unknown_option(const CommandShape& shape, const std::string& word) {
    std::vector<std::string> names{help_option().name};
    for (const OptionShape& option : shape.options) names.push_back(option.name);
    const auto meant = nearest(word, names);
    return usage_error(shape,
                       "unknown option " + word + (meant ? ", did you mean " + *meant + "?" : ""));
}

bool may_be_left_out(const std::string& operand) {
    return operand.starts_with('[');
}

// Breaks `text` at blanks; every line but the first starts with `indent` blanks.
std::string wrapped(const std::string& text, std::size_t indent) {
    std::istringstream words(text);
    std::string lines;
    std::size_t column = indent;
    for (std::string word; words >> word;) {
        if (column > indent && column + 1 + word.size() > kHelpColumns) {
            lines += "\n" + std::string(indent, ' ');
            column = indent;
        }
        if (column > indent) {
            lines += " ";
            ++column;
        }
        lines += word;
        column += word.size();
    }
    return lines;
}

std::string option_line(const OptionShape& option) {
    std::string left = "  " + (option.short_name.empty() ? "" : option.short_name + ", ") +
                       option.name + (option.value.empty() ? "" : " " + option.value);
    left += left.size() + 2 > kOptionColumn ? "\n" + std::string(kOptionColumn, ' ')
                                            : std::string(kOptionColumn - left.size(), ' ');
    return left + wrapped(option.help, kOptionColumn) + "\n";
}

}  // namespace

std::optional<std::string> Arguments::find(std::string_view option) const {
    const auto found = values_.find(std::string(option));
    if (found == values_.end()) return std::nullopt;
    return found->second.back();
}

std::string Arguments::get(std::string_view option, std::string_view otherwise) const {
    return find(option).value_or(std::string(otherwise));
}

std::vector<std::string> Arguments::all(std::string_view option) const {
    const auto found = values_.find(std::string(option));
    return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::string Arguments::operand(std::size_t index) const {
    return index < operands_.size() ? operands_[index] : "";
}

Arguments Arguments::parse(const CommandShape& shape, const std::vector<std::string>& words) {
    Arguments parsed;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--" && shape.rest == RestOfWords::command) {
            parsed.rest_.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
            break;
        }
        const bool is_option = word.size() > 1 && word.starts_with('-');
        const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
        const OptionShape* option =
            is_option ? find_option(shape, word.substr(0, equals)) : nullptr;
        if (option == nullptr && shape.rest == RestOfWords::unknown) {
            parsed.rest_.push_back(word);
            continue;
        }
        if (is_option && option == nullptr) throw unknown_option(shape, word.substr(0, equals));
        if (!is_option) {
            parsed.operands_.push_back(word);
            continue;
        }
        std::vector<std::string>& values = parsed.values_[option->name];
        if (!values.empty() && !option->may_repeat && option->name != help_option().name) {
            throw usage_error(shape, option->name + " is given twice");
        }
        if (option->value.empty()) {
            if (equals != std::string::npos) {
                throw usage_error(shape, option->name + " takes no value");
            }
            values.emplace_back();
        } else if (equals != std::string::npos) {
            values.push_back(word.substr(equals + 1));
        } else if (i + 1 < words.size()) {
            values.push_back(words[++i]);
        } else {
            throw usage_error(shape, option->name + " needs a value, " + option->value);
        }
    }
    if (parsed.wants_help()) return parsed;
    if (parsed.operands_.size() > shape.operands.size()) {
        throw usage_error(shape, "unexpected word: " + parsed.operands_[shape.operands.size()]);
    }
    if (parsed.operands_.size() < shape.operands.size() &&
        !may_be_left_out(shape.operands[parsed.operands_.size()])) {
        throw usage_error(shape, "missing " + shape.operands[parsed.operands_.size()]);
    }
    return parsed;
}

std::string help_text(const CommandShape& shape) {
    std::string text = "Usage: " + shape.name + " [options]";
    for (const std::string& operand : shape.operands) text += " " + operand;
    if (!shape.rest_name.empty()) text += " " + shape.rest_name;
    text += "\n\n  " + wrapped(shape.summary, 2) + "\n\nOptions:\n";
    for (const OptionShape& option : shape.options) text += option_line(option);
    text += option_line(help_option());
    return text + "\nExample:\n  " + shape.example + "\n";
}

std::chrono::seconds parse_duration(std::string_view text) {
    long long total = 0;
    std::string digits;
    bool has_unit = false;
    const auto refuse = [&] {
        return Error(ErrorCode::invalid_argument,
                     "not a duration such as 90s, 30m or 1h30m: '" + std::string(text) + "'");
    };
    for (const char c : text) {
        if (c >= '0' && c <= '9') {
            digits.push_back(c);
            continue;
        }
        const long long unit = c == 's'   ? 1
                               : c == 'm' ? 60
                               : c == 'h' ? 3600
                               : c == 'd' ? 86400
                                          : 0;
        if (unit == 0 || digits.empty() || digits.size() > kDigitsMax) throw refuse();
        total += *parse_int(digits) * unit;
        digits.clear();
        has_unit = true;
    }
    if (digits.size() > kDigitsMax || digits.empty() != has_unit) throw refuse();
    if (!digits.empty()) total = *parse_int(digits);
    return std::chrono::seconds(total);
}

std::pair<std::string, std::string> parse_pair(std::string_view option, const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
        throw Error(ErrorCode::invalid_argument,
                    std::string(option) + " must have the form name=value: '" + text + "'");
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
}

long long parse_count(std::string_view option, const std::string& text, long long least) {
    const auto count = parse_int(text);
    if (!count || *count < least) {
        throw Error(ErrorCode::invalid_argument, std::string(option) + " must be a whole number " +
                                                     "of at least " + std::to_string(least) +
                                                     ": '" + text + "'");
    }
    return *count;
}

}  // namespace gruca::cli
