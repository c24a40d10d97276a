// cli/job_request.h
//
// The body of CreateTrainingJob from a file, from flags, or from a file that flags amend.
#pragma once

#include <iosfwd>
#include <vector>

#include "base/json.h"
#include "cli/arguments.h"

namespace gruca::cli {

std::vector<OptionShape> job_request_options();

// `in` is read for "--cli-input-json -". The service checks the result, not this.
Json job_request(const Arguments& arguments, std::istream& in);

}  // namespace gruca::cli
