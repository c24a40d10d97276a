// Runs a target over the files of a directory. An empty corpus would prove nothing and fails.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "fuzz/target.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: replay <file or directory of a corpus>\n", stderr);
        return 2;
    }
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(argv[1])) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
            files.push_back(entry.path());
        }
    } else {
        files.emplace_back(argv[1]);
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
        std::printf("%s\n", file.c_str());  // The last one shown is the one that fails.
        std::fflush(stdout);
        const std::string input = gruca::read_file(file);
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
    std::printf("%zu inputs\n", files.size());
    return files.empty() ? 1 : 0;
}
