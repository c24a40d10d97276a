#include "cli/gruca.h"

#include <algorithm>
#include <ostream>

#include "base/boundary.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"

namespace gruca::cli {
namespace {

std::vector<Command> all_commands() {
    std::vector<Command> all;
    for (auto* list : {&service_commands, &job_commands, &store_commands, &data_commands,
                       &model_commands, &doctor_commands}) {
        std::vector<Command> some = list();
        std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
}

std::string overview(const std::string& noun) {
    std::string text = "Usage: gruca " + (noun.empty() ? "<noun> <verb>" : noun + " <verb>") +
                       " [options]\n\n  SageMaker training on machines of your own.\n\nCommands:\n";
    for (const Command& command : all_commands()) {
        if (!noun.empty() && split(command.shape.name, ' ').at(1) != noun) continue;
        const std::string& summary = command.shape.summary;
        std::string name = "  " + command.shape.name;
        name.resize(std::max<std::size_t>(name.size() + 2, 28), ' ');
        text += name + summary.substr(0, summary.find_first_of(".,:;")) + ".\n";
    }
    return text +
           "\nEvery command explains itself with --help.\n\nExample:\n  gruca service start\n";
}

bool is_help(const std::string& word) {
    return word == "--help" || word == "-h" || word == "help";
}

int run_command(Context& context, const std::vector<std::string>& words) {
    if (words.empty() || is_help(words[0])) {
        context.out << overview("");
        return 0;
    }
    std::vector<std::string> names;
    bool has_noun = false;
    for (const Command& command : all_commands()) {
        const std::vector<std::string> name = split(command.shape.name, ' ');
        has_noun = has_noun || name.at(1) == words[0];
        names.push_back(command.shape.name.substr(6));
        const std::size_t given = name.size() - 1;  // "job list", but "doctor" alone.
        if (words.size() < given || !std::equal(name.begin() + 1, name.end(), words.begin()))
            continue;
        const Arguments arguments = Arguments::parse(
            command.shape, {words.begin() + static_cast<std::ptrdiff_t>(given), words.end()});
        if (!arguments.wants_help()) return command.run(context, arguments);
        context.out << help_text(command.shape);
        return 0;
    }
    if (has_noun && (words.size() == 1 || is_help(words[1]))) {
        context.out << overview(words[0]);
        return 0;
    }
    const std::string said = words[0] + (words.size() > 1 ? " " + words[1] : "");
    const auto meant = nearest(said, names);
    throw Error(ErrorCode::invalid_argument,
                "no such command: gruca " + said +
                    (meant ? "; did you mean gruca " + *meant + "?" : "; see: gruca --help"));
}

}  // namespace

OptionShape data_dir_option() {
    return {.name = "--data-dir",
            .value = "<directory>",
            .help = "The service's data. Default: $GRUCA_HOME, else ~/.gruca."};
}

OptionShape json_option() {
    return {.name = "--json", .help = "Print the API's answer as it is."};
}

std::unique_ptr<Api> connect(Context& context, const Arguments& arguments, bool patient) {
    return context.connect(
        require_service(choose_data_dir(arguments.find("--data-dir"), context.environment)),
        patient);
}

void print_json(Context& context, const Json& answer) {
    context.out << answer.dump(2) << "\n";
}

std::string command_line_page() {
    std::string page =
        "# The command line\n\nGenerated from `src/cli` by `./dev docs`; a test compares them.\n";
    for (const Command& command : all_commands()) {
        page += "\n## " + command.shape.name + "\n\n```\n" + help_text(command.shape) + "```\n";
    }
    page += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n| 0 | done |\n";
    for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
        const auto failure = static_cast<ErrorCode>(code);
        page +=
            "| " + std::to_string(exit_code(failure)) + " | " + std::string(name(failure)) + " |\n";
    }
    return page + "| " + std::to_string(kExitJobFailed) + " | the job waited for has failed |\n| " +
           std::to_string(kExitInterrupted) + " | Ctrl-C ended the waiting; the job goes on |\n";
}

int run_gruca(Context& context, const std::vector<std::string>& words) {
    int code = 0;
    const auto error = run_guarded([&] { code = run_command(context, words); });
    context.out.flush();
    if (!error) return code;
    context.err << "gruca: " << error->message() << "\n";
    return exit_code(error->code());
}

}  // namespace gruca::cli
