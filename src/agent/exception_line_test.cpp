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

std::string traceback(const std::string& prefix, const std::string& exception) {
    return prefix + "Traceback (most recent call last):\n" + prefix + "  File \"train.py\"\n" +
           prefix + exception + "\n";
}

TEST(ExceptionLine, of_several_ranks_the_first_counts) {
    const std::string first = traceback("[rank3]: ", "ValueError: shapes differ");
    EXPECT_EQ(exception_line(first + traceback("[rank0]: ", "RuntimeError: NCCL watchdog")),
              "ValueError: shapes differ");
    EXPECT_EQ(exception_line(first + traceback("[rank3]: ", "RuntimeError: no weights")),
              "RuntimeError: no weights");
    EXPECT_EQ(exception_line(traceback("", "KeyError: 'handled'") + first +
                             traceback("", "RuntimeError: the launcher saw it")),
              "ValueError: shapes differ");
}

TEST(ExceptionLine, what_follows_from_another_ranks_failure_is_not_the_cause) {
    const std::string cause = traceback("[rank3]: ", "ValueError: shapes differ");
    for (const char* following :
         {"torch.distributed.DistNetworkError: The client socket has failed to connect",
          "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients",
          "TimeoutError: wait timeout after 300000ms",
          "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
          "peer [10.0.0.2]:5",
          "RuntimeError: [3] is setting up NCCL: Connection reset by peer"}) {
        EXPECT_EQ(exception_line(traceback("[rank0]: ", following) + cause),
                  "ValueError: shapes differ");
        EXPECT_EQ(exception_line(cause + traceback("", following)), "ValueError: shapes differ");
        EXPECT_EQ(exception_line(traceback("[rank0]: ", following)), following);
    }
}

TEST(ExceptionLine, what_torch_found_in_itself_is_a_cause) {
    const std::string memory =
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate "
        "memory";
    EXPECT_EQ(exception_line(traceback("", memory) + traceback("", "EOFError")), memory);
}

TEST(ExceptionLine, lines_of_ranks_that_lie_between_each_other_are_told_apart) {
    EXPECT_EQ(exception_line("[rank1]: Traceback (most recent call last):\n"
                             "[rank0]: Traceback (most recent call last):\n"
                             "[rank1]:   File \"a\"\n[rank0]:   File \"b\"\n"
                             "[rank1]: ValueError: 1\n[rank0]: ValueError: 0\n"),
              "ValueError: 1");
    EXPECT_EQ(exception_line("[rank0]: Original Traceback (most recent call last):\n"
                             "[rank0]:   File \"worker.py\"\n[rank0]: ValueError: of the worker\n"),
              "ValueError: of the worker");
}

TEST(ExceptionLine, an_exception_of_cpp_says_what_it_was) {
    EXPECT_EQ(exception_line("terminate called after throwing an instance of 'std::logic_error'\n"
                             "  what():  no such layer\n"),
              "no such layer");
}

}  // namespace
}  // namespace gruca::agent
