#include "spec/subnet.h"

#include <gtest/gtest.h>

namespace gruca::spec {
namespace {

TEST(Subnet, is_written_as_it_was_read) {
    for (const char* text : {"198.18.0.0/18", "10.1.2.4/30", "0.0.0.0/0", "127.0.0.1/32"}) {
        const auto subnet = parse_subnet(text);
        ASSERT_TRUE(subnet) << text;
        EXPECT_EQ(subnet->text(), text);
    }
    EXPECT_EQ(kLoopbackNodes.text(), "127.64.0.0/16");
}

TEST(Subnet, what_is_no_range_of_addresses_is_nothing) {
    for (const char* text :
         {"", "10.0.0.0", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.1/8", "10.0.0.256/32",
          "10.0.0.0/8/8", "a.b.c.d/8", "10.0.0.0/", "1.2.3./32"}) {
        EXPECT_FALSE(parse_subnet(text)) << text;
    }
}

TEST(Subnet, holds_its_addresses_to_the_last_and_no_other) {
    const Subnet subnet = parse_subnet("10.1.2.4/30").value();
    EXPECT_EQ(subnet.size(), 4u);
    EXPECT_TRUE(subnet.contains("10.1.2.4") && subnet.contains("10.1.2.7"));
    EXPECT_FALSE(subnet.contains("10.1.2.3") || subnet.contains("10.1.2.8"));
    EXPECT_FALSE(subnet.contains("") || subnet.contains("10.1.2.5/32"));
    EXPECT_TRUE(parse_subnet("0.0.0.0/0")->contains("255.255.255.255"));
}

TEST(Subnet, ranges_overlap_when_one_holds_the_other) {
    const Subnet wide = parse_subnet("10.0.0.0/8").value();
    const Subnet narrow = parse_subnet("10.255.255.252/30").value();
    EXPECT_TRUE(wide.overlaps(narrow) && narrow.overlaps(wide));
    EXPECT_FALSE(parse_subnet("11.0.0.0/8")->overlaps(wide));
    EXPECT_TRUE(parse_subnet("0.0.0.0/0")->overlaps(narrow));
}

}  // namespace
}  // namespace gruca::spec
