// The rules of STYLE.md and ARCHITECTURE.md that a machine can check. Failures read like compiler
// errors: "path:line: what is wrong". Add a rule here in the same change that adds it to STYLE.md.

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {
namespace fs = std::filesystem;

struct SourceFile {
    std::string path;  // Relative to the repository, '/'-separated.
    std::string room;  // "store" for src/store/...; empty outside src/.
    std::vector<std::string> lines;

    bool is_test() const { return path.ends_with("_test.cpp"); }
};

std::vector<SourceFile> sources() {
    const fs::path root = GRUCA_SOURCE_DIR;
    std::vector<SourceFile> found;
    for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
        const std::string extension = entry.path().extension();
        if (!std::set<std::string>{".h", ".cpp", ".cu", ".cuh"}.contains(extension)) continue;
        SourceFile file;
        file.path = fs::relative(entry.path(), root).generic_string();
        file.room = file.path.substr(4, file.path.find('/', 4) - 4);
        std::ifstream in(entry.path());
        for (std::string line; std::getline(in, line);) file.lines.push_back(line);
        found.push_back(std::move(file));
    }
    return found;
}

// room -> the rooms it may include, as declared by room() in CMake.
std::map<std::string, std::set<std::string>> declared_uses() {
    std::map<std::string, std::set<std::string>> uses;
    std::ifstream in(GRUCA_ROOMS_FILE);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string room, used;
        words >> room;
        room.pop_back();  // The colon.
        uses[room].insert(room);
        while (words >> used) uses[room].insert(used);
    }
    return uses;
}

#define EXPECT_TIDY(condition, file, index, message) \
    EXPECT_TRUE(condition) << (file).path << ":" << (index) + 1 << ": " << message

TEST(Tidy, a_room_includes_only_rooms_it_uses) {
    const auto uses = declared_uses();
    ASSERT_FALSE(uses.empty());
    const std::regex include("#include \"([a-z_]+)/.*\"");
    for (const SourceFile& file : sources()) {
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            std::smatch match;
            if (!std::regex_match(file.lines[i], match, include)) continue;
            EXPECT_TIDY(uses.at(file.room).contains(match[1]), file, i,
                        "room '" << file.room << "' does not use room '" << match[1].str() << "'");
        }
    }
}

TEST(Tidy, a_function_fits_on_a_screen) {
    constexpr std::size_t kLinesMax = 70;
    const std::regex opening("^[A-Za-z].*[(].*[)].*[{]$");
    for (const SourceFile& file : sources()) {
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            if (!std::regex_match(file.lines[i], opening)) continue;
            const bool excused = i > 0 && file.lines[i - 1].starts_with("// tidy: long because ");
            std::size_t end = i;
            while (end < file.lines.size() && file.lines[end] != "}") ++end;
            const std::size_t lines = excused ? 0 : end - i + 1;
            EXPECT_TIDY(lines <= kLinesMax, file, i, "function has " << lines << " lines");
        }
    }
}

TEST(Tidy, lines_have_at_most_100_columns_and_no_trailing_blanks) {
    for (const SourceFile& file : sources()) {
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            EXPECT_TIDY(file.lines[i].size() <= 100, file, i, "line is too long");
            EXPECT_TIDY(!file.lines[i].ends_with(' '), file, i, "trailing blank");
        }
    }
}

TEST(Tidy, a_header_says_what_it_is_before_it_says_anything_else) {
    for (const SourceFile& file : sources()) {
        if (!file.path.ends_with(".h")) continue;
        EXPECT_TIDY(file.lines.at(0) == "// " + file.path.substr(4), file, 0,
                    "first line is not the file's own path");
    }
}

TEST(Tidy, banned_words) {
    const std::vector<std::pair<std::regex, std::string>> banned = {
        {std::regex("\\bco_await\\b"), "GCC 12 destroys temporaries in it twice; use a thread"},
        {std::regex("\\.detach\\(\\)"), "a thread is owned; use std::jthread"},
        {std::regex("catch \\(\\.\\.\\.\\)"), "only base/boundary.h catches everything"},
    };
    for (const SourceFile& file : sources()) {
        const bool is_boundary = file.path.starts_with("src/base/boundary.");
        for (std::size_t i = 0; i < file.lines.size() && !is_boundary; ++i) {
            for (const auto& [word, instead] : banned) {
                EXPECT_TIDY(!std::regex_search(file.lines[i], word), file, i, instead);
            }
        }
    }
}

TEST(Tidy, no_room_is_a_drawer) {
    const std::regex drawer(".*(util|helper|common|misc).*");
    for (const SourceFile& file : sources()) {
        EXPECT_FALSE(std::regex_match(file.path, drawer)) << file.path << ": name its idea";
    }
}

}  // namespace
