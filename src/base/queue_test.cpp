#include "base/queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace gruca {
namespace {

TEST(Queue, a_full_queue_refuses_and_a_closed_one_drains) {
    Queue<int> queue(2);
    EXPECT_TRUE(queue.try_push(1));
    EXPECT_TRUE(queue.try_push(2));
    EXPECT_FALSE(queue.try_push(3));
    queue.close();
    EXPECT_FALSE(queue.push(4));
    EXPECT_EQ(queue.pop(), 1);
    EXPECT_EQ(queue.pop(), 2);
    EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(Queue, a_waiting_producer_goes_on_when_there_is_room) {
    Queue<int> queue(1);
    queue.push(1);
    std::jthread producer([&] { queue.push(2); });
    EXPECT_EQ(queue.pop(), 1);
    EXPECT_EQ(queue.pop(), 2);
}

TEST(Queue, close_wakes_a_waiting_consumer) {
    Queue<int> queue(1);
    std::jthread closer([&] { queue.close(); });
    EXPECT_EQ(queue.pop(), std::nullopt);
}

}  // namespace
}  // namespace gruca
