#include "agent/exception_line.h"

#include <gtest/gtest.h>

namespace gruca::agent {
namespace {

constexpr const char* kCause =
    "step 7\n"
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 3, in <module>\n"
    "    x @ y\n"
    "    ~~^~~\n"
    "ValueError: shapes differ\n";

TEST(ExceptionLine, the_end_of_a_traceback_is_found_far_from_the_end_of_the_log) {
    EXPECT_EQ(exception_line(kCause), "ValueError: shapes differ");
    std::string log = kCause;
    for (int i = 0; i < 200; ++i) log += "cleaning up\n";
    EXPECT_EQ(exception_line(log), "ValueError: shapes differ");
    EXPECT_EQ(exception_line("no exception\n"), "");
    EXPECT_EQ(exception_line("Traceback (most recent call last):\n  cut off"), "");
}

TEST(ExceptionLine, what_follows_from_the_first_failure_is_not_the_cause) {
    const std::string launcher =
        "Traceback (most recent call last):\n"
        "  File \"torchrun\", line 8, in <module>\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "=======\n"
        "train.py FAILED\n";
    EXPECT_EQ(exception_line(kCause + launcher), "ValueError: shapes differ");
    EXPECT_EQ(exception_line(launcher),
              "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:");
}

TEST(ExceptionLine, the_last_of_a_chain_counts_and_a_rank_is_left_out) {
    EXPECT_EQ(exception_line("Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n\n"
                             "During handling of the above exception, another exception "
                             "occurred:\n\n"
                             "Traceback (most recent call last):\n  File \"a\"\n"
                             "RuntimeError: no x\n"),
              "RuntimeError: no x");
    EXPECT_EQ(exception_line("[rank5]: Traceback (most recent call last):\n"
                             "[rank5]:   File \"a\"\n[rank5]: MemoryError\n"),
              "MemoryError");
}

TEST(ExceptionLine, an_exception_of_cpp_says_what_it_was) {
    EXPECT_EQ(exception_line("terminate called after throwing an instance of 'std::logic_error'\n"
                             "  what():  no such layer\n"),
              "no such layer");
}

}  // namespace
}  // namespace gruca::agent
