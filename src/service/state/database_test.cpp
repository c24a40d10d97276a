// The promises of service/state/database.h.

#include "service/state/database.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temp_dir.h"

namespace gruca::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class DatabaseTest : public testing::Test {
  protected:
    std::filesystem::path path() const { return scratch.path() / "state.db"; }
    DatabaseOptions options() const { return {.path = path()}; }

    static std::vector<std::string> jobs(const Database& database) {
        std::vector<std::string> found;
        database.for_each_live_job(
            [&](const JobRow& row) { found.push_back(row.summary.name + row.json); });
        return found;
    }
    static JobRow row(const std::string& name, std::int64_t number, const std::string& json) {
        return {.summary = {.name = name, .number = number}, .json = json};
    }
    void run_sql(const char* sql) const {
        sqlite3* connection = nullptr;
        ASSERT_EQ(sqlite3_open(path().c_str(), &connection), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK);
        sqlite3_close(connection);
    }

    const TempDir scratch;
};

TEST_F(DatabaseTest, what_was_committed_is_there_after_a_restart) {
    const KeyRecord node{
        .access_key = "AK1", .secret_key = "s", .kind = KeyKind::node, .owner = "n1"};
    const KeyRecord job{.access_key = "AK2",
                        .secret_key = "t",
                        .kind = KeyKind::job,
                        .owner = "a",
                        .session_token = "tok",
                        .expires = time_from_ms(77)};
    {
        Database database(options());
        database.commit({.inputs = {{.at = time_from_ms(5), .json = "{}"}},
                         .jobs = {row("b", 2, "2"), row("a", 1, "1")},
                         .keys = {node, job}});
    }
    const Database again(options());
    EXPECT_THAT(jobs(again), ElementsAre("a1", "b2"));
    EXPECT_THAT(again.keys(), UnorderedElementsAre(node, job));
    ASSERT_EQ(again.last_inputs(10).size(), 1u);
    EXPECT_EQ(again.last_inputs(10)[0].at, time_from_ms(5));
}

TEST_F(DatabaseTest, a_job_is_replaced_by_name_and_keys_are_forgotten_by_owner) {
    Database database(options());
    database.commit(
        {.jobs = {row("a", 1, "old")},
         .keys = {{.access_key = "K", .secret_key = "s", .kind = KeyKind::node, .owner = "same"},
                  {.access_key = "L", .secret_key = "s", .kind = KeyKind::job, .owner = "same"}}});
    database.commit(
        {.jobs = {row("a", 1, "new")}, .forgotten = {{.kind = KeyKind::node, .owner = "same"}}});
    EXPECT_THAT(jobs(database), ElementsAre("anew"));
    ASSERT_EQ(database.keys().size(), 1u);
    EXPECT_EQ(database.keys()[0].access_key, "L");
}

TEST_F(DatabaseTest, a_commit_that_fails_in_the_middle_changes_nothing) {
    Database database(options());
    database.commit({.jobs = {row("a", 1, "1")}});
    // Two jobs of one number break the table's rule at the second row.
    EXPECT_THROW(database.commit({.inputs = {{.at = {}, .json = "{}"}},
                                  .jobs = {row("b", 2, "2"), row("c", 2, "3")}}),
                 Error);
    EXPECT_THAT(jobs(database), ElementsAre("a1"));
    EXPECT_THAT(database.last_inputs(10), IsEmpty());
    database.commit({.jobs = {row("b", 2, "2")}});
    EXPECT_THAT(jobs(database), ElementsAre("a1", "b2"));
}

TEST_F(DatabaseTest, old_inputs_go_once_there_are_more_than_the_limit) {
    Database database({.path = path(), .inputs_kept_max = 10});
    Changes changes;
    for (int i = 0; i < 1500; ++i) changes.inputs.push_back({.at = time_from_ms(i), .json = "{}"});
    database.commit(changes);
    const auto kept = database.last_inputs(5000);
    ASSERT_EQ(kept.size(), 10u);
    EXPECT_EQ(kept.back().at, time_from_ms(1499));
}

TEST_F(DatabaseTest, a_job_that_is_over_is_read_only_when_asked_for) {
    JobRow over = row("a", 1, "1");
    over.summary.arn = "arn";
    over.summary.instances = 3;
    over.summary.status = "Stopped";
    over.summary.secondary = "MaxRuntimeExceeded";
    over.summary.over = true;
    over.summary.created = time_from_ms(5);
    over.summary.modified = time_from_ms(6);
    over.summary.ended = time_from_ms(7);
    Database database(options());
    database.commit({.jobs = {over, row("b", 2, "2")}});
    EXPECT_THAT(jobs(database), ElementsAre("b2"));
    EXPECT_EQ(database.find_job("a"), "1");
    EXPECT_EQ(database.find_job("c"), std::nullopt);
    EXPECT_EQ(database.last_job_number(), 2);
    std::vector<JobSummary> summaries;
    database.for_each_summary([&](const JobSummary& one) { summaries.push_back(one); });
    EXPECT_THAT(summaries, UnorderedElementsAre(over.summary, row("b", 2, "2").summary));
}

TEST_F(DatabaseTest, a_job_is_found_while_a_commit_waits) {
    Database database(options());
    database.commit({.jobs = {row("a", 1, "1")}});
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE; DELETE FROM jobs", 0, 0, 0), SQLITE_OK);
    EXPECT_EQ(database.find_job("a"), "1");
    sqlite3_close(other);
}

// What version 1 wrote, byte for byte, but for what a migration does not look at.
TEST_F(DatabaseTest, jobs_of_version_1_are_taken_over) {
    { const Database database(options()); }
    run_sql(R"(
        DROP TABLE jobs;
        CREATE TABLE jobs (name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE,
            json TEXT NOT NULL) WITHOUT ROWID;
        INSERT INTO jobs VALUES ('old', 7, '{"spec":{"arn":"arn:old","instance_count":2},' ||
            '"number":7,"status":"Completed","secondary":"Completed","created_ms":1,' ||
            '"modified_ms":4,"training_started_ms":2,"ended_ms":3}');
        INSERT INTO jobs VALUES ('new', 8, '{"spec":{"arn":"arn:new","instance_count":1},' ||
            '"number":8,"status":"InProgress","secondary":"Starting","created_ms":5,' ||
            '"modified_ms":6}');
        PRAGMA user_version = 1;
    )");
    const JobSummary old{.name = "old",
                         .number = 7,
                         .arn = "arn:old",
                         .instances = 2,
                         .status = "Completed",
                         .secondary = "Completed",
                         .over = true,
                         .created = time_from_ms(1),
                         .modified = time_from_ms(4),
                         .training_started = time_from_ms(2),
                         .ended = time_from_ms(3)};
    const JobSummary fresh{.name = "new",
                           .number = 8,
                           .arn = "arn:new",
                           .instances = 1,
                           .status = "InProgress",
                           .secondary = "Starting",
                           .created = time_from_ms(5),
                           .modified = time_from_ms(6)};
    for (int start = 0; start < 2; ++start) {
        const Database database(options());
        std::vector<JobSummary> summaries;
        database.for_each_summary([&](const JobSummary& one) { summaries.push_back(one); });
        EXPECT_THAT(summaries, UnorderedElementsAre(old, fresh));
        EXPECT_EQ(jobs(database).size(), 1u);
        EXPECT_THAT(database.find_job("old").value_or(""), testing::HasSubstr("arn:old"));
    }
}

TEST_F(DatabaseTest, a_newer_schema_is_refused) {
    { const Database database(options()); }
    run_sql("PRAGMA user_version = 99");
    try {
        const Database database(options());
        FAIL() << "opened a database of the future";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::precondition_failed);
        EXPECT_THAT(error.message(), testing::HasSubstr("99"));
    }
}

TEST_F(DatabaseTest, a_file_that_is_no_database_is_refused_and_left_alone) {
    const std::string content(8192, 'x');
    write_file_atomic(path(), content);
    try {
        const Database database(options());
        FAIL() << "opened a text as a database";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::data_loss);
    }
    EXPECT_EQ(read_file(path()), content);
}

TEST_F(DatabaseTest, only_its_owner_can_read_it) {
    Database database(options());
    database.commit({.jobs = {row("a", 1, "1")}});
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) {
        EXPECT_EQ(static_cast<unsigned>(entry.status().permissions()), 0600u) << entry.path();
    }
}

}  // namespace
}  // namespace gruca::service
