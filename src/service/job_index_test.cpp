// The orders of service/job_index.h, held against sorting and filtering everything.

#include "service/job_index.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/random.h"

namespace gruca::service {
namespace {

constexpr std::array kStatuses = {"InProgress", "Completed", "Failed", "Stopped"};

// More than a list walks, so that both ways of making a page are taken.
constexpr int kJobs = 3 * static_cast<int>(kRowsWalkedMax);

JobSummary some_job(int number, std::uint64_t chance) {
    return {.name = std::to_string(chance % 1000) + "-" + std::to_string(number),
            .number = number,
            .arn = "arn:x/" + std::to_string(number),
            .status = kStatuses.at(chance / 7 % kStatuses.size()),
            .created = time_from_ms(static_cast<std::int64_t>(chance / 11 % 50)),
            .modified = time_from_ms(static_cast<std::int64_t>(chance / 13 % 50))};
}

// What a list is by its definition.
std::vector<std::string> expected(std::vector<JobSummary> jobs, const JobQuery& query) {
    std::erase_if(jobs, [&](const JobSummary& job) {
        return (query.created_after && job.created <= *query.created_after) ||
               (query.modified_before && job.modified >= *query.modified_before) ||
               (!query.status.empty() && job.status != query.status) ||
               job.name.find(query.name_contains) == std::string::npos;
    });
    std::sort(jobs.begin(), jobs.end(), [&](const JobSummary& a, const JobSummary& b) {
        return place_of(a, query.order) < place_of(b, query.order);
    });
    if (query.descending) std::reverse(jobs.begin(), jobs.end());
    std::vector<std::string> names;
    for (const JobSummary& job : jobs) names.push_back(job.name);
    return names;
}

std::vector<std::string> listed(const JobIndex& index, JobQuery query) {
    std::vector<std::string> names;
    for (;;) {
        const JobPage page = index.list(query);
        EXPECT_LE(page.jobs.size(), query.count_max);
        for (const JobSummary& job : page.jobs) names.push_back(job.name);
        if (!page.more) return names;
        query.after = place_of(page.jobs.back(), query.order);
    }
}

TEST(JobIndex, every_list_is_what_sorting_and_filtering_everything_gives) {
    const Philox chance(7, 0);
    JobIndex index;
    std::vector<JobSummary> jobs;
    for (int i = 0; i < kJobs; ++i) {
        jobs.push_back(some_job(i, chance.u64(static_cast<std::uint64_t>(i))));
        if (i == kJobs / 2) index.put_new(jobs);
        if (i > kJobs / 2) index.put(jobs.back());
    }
    for (std::size_t i = 0; i < jobs.size(); i += 3) {  // A third of them goes on.
        jobs[i].status = "Completed";
        jobs[i].modified = time_from_ms(60);
        index.put(jobs[i]);
    }
    for (const JobOrder order : {JobOrder::creation, JobOrder::name, JobOrder::status}) {
        for (const bool descending : {false, true}) {
            const JobQuery all{.order = order, .descending = descending, .count_max = 97};
            JobQuery some = all;
            some.status = "Completed";
            some.name_contains = "1";
            JobQuery late = all;
            late.created_after = time_from_ms(20);
            late.modified_before = time_from_ms(45);
            JobQuery nothing = all;
            nothing.name_contains = "nowhere";
            for (const JobQuery& query : {all, some, late, nothing}) {
                EXPECT_EQ(listed(index, query), expected(jobs, query));
            }
        }
    }
}

TEST(JobIndex, a_page_goes_on_behind_a_job_that_has_moved) {
    JobIndex index;
    for (int i = 0; i < 3; ++i) {
        index.put({.name = std::to_string(i), .number = i, .status = "InProgress"});
    }
    JobQuery query{.order = JobOrder::status, .count_max = 1};
    const JobPage first = index.list(query);
    EXPECT_EQ(first.jobs.at(0).name, "0");
    query.after = place_of(first.jobs.at(0), query.order);
    index.put({.name = "0", .number = 0, .status = "Stopped"});
    EXPECT_EQ(index.list(query).jobs.at(0).name, "1");
}

TEST(JobIndex, of_two_arns_that_differ_in_case_each_finds_its_own) {
    JobIndex index;
    index.put({.name = "job", .number = 1, .arn = "arn:x/job"});
    index.put({.name = "JOB", .number = 2, .arn = "arn:x/JOB"});
    index.put({.name = "other", .number = 3, .arn = "arn:x/other"});
    EXPECT_EQ(index.find_by_arn("arn:x/job")->number, 1);
    EXPECT_EQ(index.find_by_arn("arn:x/JOB")->number, 2);
    EXPECT_EQ(index.find_by_arn("ARN:X/Other")->number, 3);
    EXPECT_EQ(index.find_by_arn("arn:y/other"), nullptr);
}

}  // namespace
}  // namespace gruca::service
