// service/s3/refusal.h
//
// How an operation on objects says no: thrown from anywhere in it, answered in one place. Codes and
// statuses are those of the S3 API reference, "Error responses".
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "net/http.h"
#include "service/api/answer.h"

namespace gruca::service::s3 {

struct Refusal {
    api::Fault fault;
    net::Headers headers = {};  // Beside the usual ones.
};

[[noreturn]] void refuse(int status, std::string code, std::string message);

[[noreturn]] void refuse_no_bucket(const std::string& bucket);
[[noreturn]] void refuse_no_key(const std::string& key);
[[noreturn]] void refuse_argument(std::string message);  // InvalidArgument, 400.
[[noreturn]] void refuse_precondition(const std::string& header);

// What a failure of the store means to a client: a full disk is not its fault, and it should come
// again.
api::Fault fault_of_failure(const Error& error);

// The Error document in XML.
std::string error_document(const api::Fault& fault, const std::string& request_id);

}  // namespace gruca::service::s3
