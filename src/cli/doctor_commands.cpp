#include <ostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/doctor.h"

namespace gruca::cli {
namespace {

int run_doctor(Context& context, const Arguments& arguments) {
    const auto data_dir = choose_data_dir(arguments.find("--data-dir"), context.environment);
    const auto findings = examine(look_at_machine(context.program_dir, data_dir));
    if (arguments.has("--json")) {
        print_json(context, findings_json(findings));
    } else {
        context.out << findings_text(findings);
    }
    return is_unusable(findings) ? exit_code(ErrorCode::unavailable) : 0;
}

}  // namespace

std::vector<Command> doctor_commands() {
    return {{.shape = {.name = "gruca doctor",
                       .summary = "Says what of this machine is usable, what follows from each "
                                  "thing that is not, and what to do about it. Tries rather than "
                                  "guesses, and leaves nothing behind. Ends with an error where "
                                  "jobs cannot run.",
                       .options = {{.name = "--json", .help = "Print the findings as JSON."},
                                   data_dir_option()},
                       .example = "gruca doctor"},
             .run = run_doctor}};
}

}  // namespace gruca::cli
