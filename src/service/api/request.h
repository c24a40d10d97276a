// service/api/request.h
//
// Reads the members of a request and collects what is wrong with them, to be told at once and in
// the API's words. Reading a wrong member gives its default; finish() throws before it is used.
//
//   RequestReader read(call.request);
//   const std::string name = read.text("TrainingJobName", {.length_max = 63, .required = true});
//   read.finish();
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "spec/violations.h"

namespace gruca::service::api {

struct TextRule {
    std::size_t length_min = 0;
    std::size_t length_max = 1024;
    std::string_view pattern = {};  // A literal: it is kept.
    std::vector<std::string_view> values = {};  // The only ones allowed; empty: any.
    bool required = false;
};

struct IntegerRule {
    std::int64_t min = INT64_MIN;
    std::int64_t max = INT64_MAX;
    std::int64_t otherwise = 0;
};

class RequestReader {
  public:
    explicit RequestReader(const Json& request) : request_(request) {}

    std::string text(std::string_view member, const TextRule& rule);  // Empty when not given.
    std::int64_t integer(std::string_view member, const IntegerRule& rule);
    bool boolean(std::string_view member, bool otherwise);
    std::optional<TimePoint> seconds(std::string_view member);       // Epoch seconds, or ISO 8601.
    std::optional<TimePoint> milliseconds(std::string_view member);  // As CloudWatch Logs.
    std::vector<std::string> texts(std::string_view member, std::size_t count_min,
                                   std::size_t count_max, const TextRule& each);

    void require(std::string_view member) { find(member, true); }  // Whatever it is.
    void finish() const { violations_.throw_if_any(); }

  private:
    const Json* find(std::string_view member, bool required);
    void check(const Json& value, const std::string& path, const TextRule& rule);

    const Json& request_;
    spec::Violations violations_;
};

// The name of a training job, as every operation on one takes it.
TextRule job_name_rule();
// The ARN of something tagged.
TextRule resource_arn_rule();

}  // namespace gruca::service::api
