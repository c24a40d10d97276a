// cli/arguments.h
//
// What a command takes, declared once: the parser, the help and the errors come from it.
//
//   gruca job stop [options] <job>
//
// Options are "--name value" or "--name=value"; a switch has no value. "--" ends the options; what
// follows is `rest`, where the command takes one.
//
// Thread-compatible.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gruca::cli {

struct OptionShape {
    std::string name;             // "--wait"
    std::string value = {};       // "<duration>"; empty: a switch.
    std::string help;             // For people; lines are broken by help_text.
    std::string short_name = {};  // "-r"
    bool may_repeat = false;
};

enum class RestOfWords {
    none,     // An unknown option is an error, and so is "--".
    command,  // Words after "--".
    unknown,  // Every word that is not an option declared here, in order.
};

struct CommandShape {
    std::string name;                        // "gruca job stop"
    std::string summary;                     // A sentence or a few.
    std::vector<OptionShape> options = {};   // --help is always there.
    std::vector<std::string> operands = {};  // "<job>"; "[prefix]" may be left out.
    RestOfWords rest = RestOfWords::none;
    std::string rest_name = {};  // "-- <command> [arguments]"
    std::string example;
};

class Arguments {
  public:
    bool has(std::string_view option) const { return values_.contains(std::string(option)); }
    std::optional<std::string> find(std::string_view option) const;
    std::string get(std::string_view option, std::string_view otherwise = "") const;
    std::vector<std::string> all(std::string_view option) const;
    std::string operand(std::size_t index) const;  // Empty when left out.
    const std::vector<std::string>& rest() const { return rest_; }
    bool wants_help() const { return has("--help"); }

    // Throws invalid_argument, naming the word, what was meant, and where the help is.
    static Arguments parse(const CommandShape& shape, const std::vector<std::string>& words);

  private:
    std::map<std::string, std::vector<std::string>> values_;
    std::vector<std::string> operands_;
    std::vector<std::string> rest_;
};

std::string help_text(const CommandShape& shape);

// "90", "90s", "30m", "1h30m", "2d". Throws invalid_argument, quoting the text.
std::chrono::seconds parse_duration(std::string_view text);

// "key=value". Throws invalid_argument naming `option`.
std::pair<std::string, std::string> parse_pair(std::string_view option, const std::string& text);

// A whole number of at least `least`. Throws invalid_argument naming `option`.
long long parse_count(std::string_view option, const std::string& text, long long least = 0);

}  // namespace gruca::cli
