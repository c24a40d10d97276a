// The promises of service/auth/aws_profile.h, and of the keys it writes down.

#include "service/auth/aws_profile.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <map>

#include "base/file.h"
#include "base/random.h"
#include "base/temp_dir.h"
#include "base/temporaries.h"
#include "service/auth/key_ring.h"

namespace gruca::service {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class AwsProfileTest : public testing::Test {
  protected:
    ProfileOutcome install() const { return install_profile(files, profile); }
    std::string credentials() const { return read_file(files.credentials); }
    std::string config() const { return read_file(files.config); }
    void given(const std::string& credentials_text, const std::string& config_text) const {
        std::filesystem::create_directories(files.config.parent_path());
        write_file_atomic(files.credentials, credentials_text, {.mode = 0640});
        write_file_atomic(files.config, config_text, {.mode = 0600});
    }
    static unsigned mode(const std::filesystem::path& path) {
        return static_cast<unsigned>(std::filesystem::status(path).permissions());
    }

    const TempDir scratch;
    const AwsFiles files{.credentials = scratch.path() / ".aws" / "credentials",
                         .config = scratch.path() / ".aws" / "config"};
    AwsProfile profile{.access_key = "AKIAOURS",
                       .secret_key = "s3cret",
                       .region = "us-east-1",
                       .endpoint = "http://127.0.0.1:7717"};
};

TEST_F(AwsProfileTest, absent_files_are_made_for_their_owner_only) {
    EXPECT_EQ(install(), ProfileOutcome::written);
    EXPECT_EQ(credentials(),
              "[gruca]\n# written by gruca-service for AKIAOURS\n"
              "aws_access_key_id = AKIAOURS\naws_secret_access_key = s3cret\n");
    EXPECT_THAT(config(), StartsWith("[profile gruca]\n# written by gruca-service for AKIAOURS\n"
                                     "region = us-east-1\nendpoint_url = http://127.0.0.1:7717\n"));
    EXPECT_EQ(mode(files.credentials), 0600u);
    EXPECT_EQ(mode(files.config), 0600u);
    EXPECT_EQ(mode(files.config.parent_path()), 0700u);
    EXPECT_EQ(install(), ProfileOutcome::unchanged);
}

TEST_F(AwsProfileTest, what_a_killed_service_left_beside_the_files_is_removed) {
    given("[default]\n", "[default]\n");
    for (const auto& file : {files.credentials, files.config}) make_temporary(file);
    EXPECT_EQ(install(), ProfileOutcome::written);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files.config.parent_path()), {}),
              2);
}

TEST_F(AwsProfileTest, what_was_there_stays_byte_for_byte_and_so_does_the_mode) {
    const std::string others =
        "# mine\n[default]\naws_access_key_id=A\n\n  [odd\n[work]\nx = [gruca]\n";
    given(others, others);
    EXPECT_EQ(install(), ProfileOutcome::written);
    EXPECT_THAT(credentials(), StartsWith(others + "\n[gruca]\n"));
    EXPECT_THAT(config(), StartsWith(others + "\n[profile gruca]\n"));
    EXPECT_EQ(mode(files.credentials), 0640u);
}

TEST_F(AwsProfileTest, a_last_line_without_an_end_gets_one) {
    given("[default]\na = b", "[default]\nregion = r");
    EXPECT_EQ(install(), ProfileOutcome::written);
    EXPECT_THAT(credentials(), StartsWith("[default]\na = b\n\n[gruca]\n"));
}

TEST_F(AwsProfileTest, a_file_of_carriage_returns_keeps_them) {
    given("[default]\r\na = b\r\n", "[default]\r\n");
    EXPECT_EQ(install(), ProfileOutcome::written);
    EXPECT_THAT(credentials(), StartsWith("[default]\r\na = b\r\n\r\n[gruca]\r\n# written"));
    EXPECT_THAT(credentials(), HasSubstr("aws_access_key_id = AKIAOURS\r\n"));
    EXPECT_EQ(install(), ProfileOutcome::unchanged);
}

TEST_F(AwsProfileTest, our_own_profile_follows_the_service_and_keeps_what_the_user_added) {
    given("",
          "[profile gruca]\n# written by gruca-service for AKIAOURS\n"
          "endpoint_url = http://127.0.0.1:1\ncli_pager =\nregion = eu-west-1\n\n[profile "
          "z]\nregion=q\n");
    EXPECT_EQ(install(), ProfileOutcome::written);
    EXPECT_EQ(config(),
              "[profile gruca]\n# written by gruca-service for AKIAOURS\noutput = json\n"
              "endpoint_url = http://127.0.0.1:7717\ncli_pager =\nregion = us-east-1\n\n"
              "[profile z]\nregion=q\n");
}

TEST_F(AwsProfileTest, a_foreign_profile_of_the_name_is_never_touched) {
    const std::string foreign = "[gruca]\naws_access_key_id = THEIRS\n";
    given(foreign, "");
    EXPECT_EQ(install(), ProfileOutcome::foreign);
    EXPECT_EQ(credentials(), foreign);
    EXPECT_EQ(config(), "");
    for (const char* header : {"[profile gruca]", "[profile \"gruca\"]", "[profile  gruca] # x"}) {
        given("", std::string(header) + "\nregion = r\n");
        EXPECT_EQ(install(), ProfileOutcome::foreign) << header;
        EXPECT_EQ(credentials(), "");
    }
}

TEST_F(AwsProfileTest, the_profile_of_another_service_is_foreign) {
    EXPECT_EQ(install(), ProfileOutcome::written);
    profile.access_key = "AKIAOTHER";
    EXPECT_EQ(install(), ProfileOutcome::foreign);
    EXPECT_THAT(credentials(), Not(HasSubstr("AKIAOTHER")));
}

TEST_F(AwsProfileTest, a_linked_file_is_written_where_it_lies) {
    std::filesystem::create_directories(files.config.parent_path());
    write_file_atomic(scratch.path() / "real", "[default]\n");
    std::filesystem::create_symlink(scratch.path() / "real", files.config);
    EXPECT_EQ(install(), ProfileOutcome::written);
    EXPECT_TRUE(std::filesystem::is_symlink(files.config));
    EXPECT_THAT(read_file(scratch.path() / "real"), HasSubstr("[profile gruca]"));
}

TEST_F(AwsProfileTest, one_file_for_both_gets_both_sections) {
    const AwsFiles one{.credentials = files.config, .config = files.config};
    EXPECT_EQ(install_profile(one, profile), ProfileOutcome::written);
    EXPECT_THAT(config(), HasSubstr("[gruca]\n"));
    EXPECT_THAT(config(), HasSubstr("[profile gruca]\n"));
    EXPECT_EQ(install_profile(one, profile), ProfileOutcome::unchanged);
}

TEST_F(AwsProfileTest, what_is_not_a_file_is_never_replaced) {
    given("", "");
    ASSERT_EQ(::mkfifo((scratch.path() / "pipe").c_str(), 0600), 0);
    const AwsFiles odd{.credentials = files.credentials, .config = scratch.path() / "pipe"};
    EXPECT_EQ(install_profile(odd, profile), ProfileOutcome::not_a_file);
    EXPECT_TRUE(std::filesystem::is_fifo(odd.config));
    EXPECT_EQ(credentials(), "");
}

TEST(AwsFilesTest, variables_name_the_files_and_home_is_the_default) {
    std::map<std::string, std::string> variables = {{"HOME", "/h"}};
    const auto variable = [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    EXPECT_EQ(aws_files(variable).credentials, "/h/.aws/credentials");
    variables["AWS_CONFIG_FILE"] = "/etc/aws";
    variables["AWS_SHARED_CREDENTIALS_FILE"] = "~/c";
    EXPECT_EQ(aws_files(variable).config, "/etc/aws");
    EXPECT_EQ(aws_files(variable).credentials, "/h/c");
}

TEST(KeyRingTest, keys_are_shaped_like_those_of_aws) {
    SystemRandom random;
    const KeyRecord admin = make_key(random, KeyKind::admin, "admin");
    EXPECT_THAT(admin.access_key, testing::MatchesRegex("AKIA[A-Z2-7]*"));
    EXPECT_EQ(admin.access_key.size(), 20u);
    EXPECT_EQ(admin.secret_key.size(), 40u);
    EXPECT_TRUE(admin.session_token.empty());
    const KeyRecord job = make_key(random, KeyKind::job, "a");
    EXPECT_THAT(job.access_key, StartsWith("ASIA"));
    EXPECT_FALSE(job.session_token.empty());
}

TEST(KeyRingTest, a_forgotten_owner_has_no_key_any_more) {
    SystemRandom random;
    const KeyRecord node = make_key(random, KeyKind::node, "x");
    const KeyRecord job = make_key(random, KeyKind::job, "x");
    KeyRing ring({node, job});
    EXPECT_EQ(ring.find_of({.kind = KeyKind::node, .owner = "x"}), node);
    ring.forget({.kind = KeyKind::node, .owner = "x"});
    EXPECT_FALSE(ring.find(node.access_key));
    EXPECT_FALSE(ring.find_of({.kind = KeyKind::node, .owner = "x"}));
    EXPECT_EQ(ring.find(job.access_key), job);
}

}  // namespace
}  // namespace gruca::service
