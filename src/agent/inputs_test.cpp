#include "agent/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "store/memory_store.h"

namespace gruca::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Inputs : public testing::Test {
  protected:
    static spec::TaskChannel channel(const std::string& uri,
                                     const std::string& distribution = "FullyReplicated") {
        return {.name = "train",
                .s3_uri = uri,
                .input_mode = "File",
                .distribution = distribution,
                .content_type = "",
                .record_wrapper = "None"};
    }
    void put(std::initializer_list<const char*> keys) {
        for (const char* key : keys) store.put(key, std::string_view("x"));
    }
    std::vector<std::string> paths(const spec::TaskChannel& channel, NodeRank rank = {}) const {
        std::vector<std::string> result;
        for (const InputFile& file : files_of_channel(store, channel, rank)) {
            result.push_back(file.path);
        }
        return result;
    }
    ErrorCode refusal(const spec::TaskChannel& channel) const {
        try {
            files_of_channel(store, channel, {});
        } catch (const Error& error) {
            return error.code();
        }
        ADD_FAILURE() << "not refused";
        return ErrorCode::internal;
    }

    const TempDir scratch;
    store::MemoryStore store;
};

TEST_F(Inputs, names_begin_after_the_last_slash_of_the_prefix) {
    put({"b/train/a/x", "b/train/y", "b/train1", "b/train/empty/", "other/train/z"});
    EXPECT_THAT(paths(channel("s3://b/train/")), ElementsAre("a/x", "y"));
    EXPECT_THAT(paths(channel("s3://b/train")), ElementsAre("train/a/x", "train/y", "train1"));
    EXPECT_THAT(paths(channel("s3://b/train/y")), ElementsAre("y"));
    EXPECT_THAT(paths(channel("s3://b/")), ElementsAre("train/a/x", "train/y", "train1"));
    EXPECT_THAT(paths(channel("s3://b")), ElementsAre("train/a/x", "train/y", "train1"));
}

TEST_F(Inputs, sharding_deals_every_object_to_exactly_one_node) {
    put({"b/d/0", "b/d/1", "b/d/2", "b/d/3", "b/d/4"});
    const auto sharded = channel("s3://b/d/", "ShardedByS3Key");
    EXPECT_THAT(paths(sharded, {.index = 0, .count = 2}), ElementsAre("0", "2", "4"));
    EXPECT_THAT(paths(sharded, {.index = 1, .count = 2}), ElementsAre("1", "3"));
    EXPECT_THAT(paths(sharded, {.index = 6, .count = 7}), ElementsAre());
}

TEST_F(Inputs, an_empty_prefix_is_an_error_that_names_uri_and_channel) {
    put({"b/elsewhere", "b/d/"});
    try {
        files_of_channel(store, channel("s3://b/d/"), {});
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_THAT(error.message(), HasSubstr("s3://b/d/"));
        EXPECT_THAT(error.message(), HasSubstr("'train'"));
    }
}

TEST_F(Inputs, a_key_never_leads_out_of_its_channel) {
    for (const char* key : {"b/d/../../etc/passwd", "b/d//absolute", "b/d/a/./b", "b/d/.."}) {
        store.put(key, std::string_view("x"));
        EXPECT_EQ(refusal(channel("s3://b/d/")), ErrorCode::invalid_argument) << key;
        store.remove(key);
    }
    store.put(std::string_view("b/d/nul\0", 8), std::string_view("x"));
    EXPECT_EQ(refusal(channel("s3://b/d/")), ErrorCode::invalid_argument);
}

TEST_F(Inputs, a_file_that_another_key_needs_as_a_directory_is_an_error) {
    put({"b/d/a", "b/d/a/b"});
    EXPECT_EQ(refusal(channel("s3://b/d/")), ErrorCode::invalid_argument);
}

TEST_F(Inputs, every_byte_arrives) {
    const std::string large(9'000'000, 'x');
    store.put("b/d/deep/large", large);
    store.put("b/d/empty", std::string_view());
    download(store, files_of_channel(store, channel("s3://b/d/"), {}), scratch.path(), {});
    EXPECT_EQ(read_file(scratch.path() / "deep" / "large"), large);
    EXPECT_EQ(read_file(scratch.path() / "empty"), "");
}

TEST_F(Inputs, more_data_than_disk_is_said_before_the_first_byte) {
    store.put("b/d/a", std::string_view("x"));
    std::vector<InputFile> files = files_of_channel(store, channel("s3://b/d/"), {});
    files[0].object.bytes = std::uint64_t{1} << 60;
    try {
        download(store, files, scratch.path(), {});
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
        EXPECT_THAT(error.message(), HasSubstr("free"));
    }
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "a"));
}

TEST_F(Inputs, an_object_that_changed_since_it_was_listed_is_not_used) {
    store.put("b/d/a", std::string_view("long"));
    const std::vector<InputFile> files = files_of_channel(store, channel("s3://b/d/"), {});
    store.put("b/d/a", std::string_view("x"));
    EXPECT_THROW(download(store, files, scratch.path(), {}), Error);
}

TEST_F(Inputs, a_stopped_download_ends) {
    put({"b/d/a"});
    std::stop_source source;
    source.request_stop();
    try {
        download(store, files_of_channel(store, channel("s3://b/d/"), {}), scratch.path(),
                 source.get_token());
        FAIL() << "not stopped";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
}

}  // namespace
}  // namespace gruca::agent
