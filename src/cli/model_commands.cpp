#include "cli/command.h"

namespace gruca::cli {
namespace {

// The trainer's program owns models and their arithmetic; this only finds it.
int generate(Context& context, const Arguments& arguments) {
    std::vector<std::string> argv{(context.program_dir / "gruca-train").string(), "generate"};
    argv.insert(argv.end(), arguments.rest().begin(), arguments.rest().end());
    context.become(argv);
    return 0;
}

}  // namespace

std::vector<Command> model_commands() {
    return {
        {.shape = {.name = "gruca model generate",
                   .summary = "Continues a text with a trained model. The options are those of "
                              "gruca-train generate; gruca-train generate --help lists them.",
                   .rest = RestOfWords::unknown,
                   .rest_name = "--model <directory> --prompt <text>",
                   .example = "gruca model generate --model ./model --prompt 'Once upon a time'"},
         .run = generate},
    };
}

}  // namespace gruca::cli
